"""Old names that still work for some versions, with a warning that names the new one."""

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def warn_deprecated(old: str, new: str, removal: str, stacklevel: int = 2) -> None:
    """Warn that something has another name now.

    The warning is a ``FutureWarning``, which Python shows to users by default.

    Args:
        old: The name that was used.
        new: What to use instead.
        removal: The version that will not have the old name.
        stacklevel: Whose line the warning shows, as in ``warnings.warn``; 2 is the caller.
    """
    message = (
        f"{old} is deprecated and will be removed in version {removal}. Use {new}."
    )
    warnings.warn(message, FutureWarning, stacklevel=stacklevel + 1)


def renamed(
    module: str, names: Mapping[str, str], removal: str
) -> Callable[[str], Any]:
    """Return a ``__getattr__`` of a module with which old names mean new ones.

    Define it unless ``TYPE_CHECKING`` is set; otherwise mypy would accept any name.

    Args:
        module: The name of the module, ``__name__``.
        names: The new name of each old one; both belong to the module.
        removal: The version that will not have the old names.
    """

    def found(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = names[name]
        warn_deprecated(f"{module}.{name}", f"{module}.{new}", removal)
        return getattr(sys.modules[module], new)

    return found
