"""Quick import of the packages that a run needs, in a process that only runs emea."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from types import ModuleType
from typing import Any

UNUSED = ("matplotlib", "scipy")
"""Packages that torchmetrics loads for plots and audio metrics, which emea does not use."""

COMPILER = "torch._dynamo"
"""Torch's compiler. Lightning imports it to recognise compiled modules, which emea does not use."""

LIGHTNING = ("lightning_fabric", "pytorch_lightning")

REPLACED = ("_version", "package_available", "module_available")
"""Names of ``lightning_utilities`` that decide which packages torchmetrics imports."""


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import Lightning and emea's own modules within this context in about half of the time.

    The garbage collector does not run meanwhile, and does not visit the imported objects later. If
    Lightning has already been imported, the context does nothing.
    """
    if "pytorch_lightning" in sys.modules:
        yield
        return
    gc.disable()
    try:
        _import_torchmetrics()
        _import_lightning()
        yield
    finally:
        gc.enable()
        gc.freeze()


def _import_torchmetrics() -> None:
    """Import torchmetrics, on which Lightning is based, as if the unused packages were missing.

    This saves about a second. It replaces names of ``lightning_utilities`` during the import; a
    version without them imports all packages.
    """
    imports: Any = import_module("lightning_utilities.core.imports")
    if not all(hasattr(imports, name) for name in REPLACED):
        return
    modules: dict[str, Any] = sys.modules
    find_version = imports._version

    def version(name: str) -> str:
        if name in UNUSED:
            raise PackageNotFoundError(name)
        return str(find_version(name))

    hidden = {name: modules.get(name) for name in UNUSED}
    imports._version = version
    modules.update(dict.fromkeys(UNUSED))  # None makes an import fail
    try:
        import_module("torchmetrics")
    finally:
        imports._version = find_version
        imports.package_available.cache_clear()
        imports.module_available.cache_clear()
        for name, module in hidden.items():
            if module is None:
                del modules[name]
            else:
                modules[name] = module


def _import_lightning() -> None:
    """Import Lightning without torch's compiler, whose import takes longer than Lightning's.

    Lightning finds placeholders for the class of compiled modules and for a decorator of methods
    that are not to be compiled. If a version of Lightning needs more of the compiler, it is
    imported again, with the compiler.
    """
    if COMPILER in sys.modules:
        return
    placeholder: Any = ModuleType(COMPILER)
    placeholder.OptimizedModule = type("OptimizedModule", (), {})
    placeholder.disable = lambda function, *_, **__: function
    sys.modules[COMPILER] = placeholder
    try:
        import_module("pytorch_lightning")
    except (ImportError, AttributeError):
        for name in [name for name in sys.modules if name.split(".")[0] in LIGHTNING]:
            del sys.modules[name]
    finally:
        if sys.modules.get(COMPILER) is placeholder:
            del sys.modules[COMPILER]
