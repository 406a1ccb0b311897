"""Quick imports, in a new process."""

import os
import subprocess
import sys

import pytest

from emea.cli.loading import UNUSED, quick_imports

PROGRAM = f"""
LOADS_COMPILER = globals().get("LOADS_COMPILER", False)
import gc, sys
from emea.cli.loading import quick_imports
with quick_imports():
    assert not gc.isenabled()
    from pytorch_lightning import Trainer
assert gc.isenabled()
assert ("torch._dynamo" in sys.modules) == LOADS_COMPILER
assert "pytorch_lightning.trainer.trainer" in sys.modules
import torch._dynamo  # the real compiler can still be imported
assert torch._dynamo.OptimizedModule is not object and torch._dynamo.__file__
import matplotlib.figure, scipy.signal  # both can still be imported
from torchmetrics import MeanMetric
mean = MeanMetric()
mean.update([1.0, 3.0])
print(float(mean.compute()), {UNUSED!r})
"""


OTHER_VERSION = "import emea.cli.loading as loading; loading.REPLACED = ('missing',)\n"
"""Imitates a version of ``lightning_utilities`` that has other private names."""

OTHER_LIGHTNING = """
import emea.cli.loading as loading
import_module, LOADS_COMPILER = loading.import_module, True
def failing(name):
    module = import_module(name)
    if name == "pytorch_lightning":
        raise ImportError("it needs more of the compiler")
    return module
loading.import_module = failing
"""
"""Imitates a version of Lightning that uses more of torch's compiler when it is imported."""


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", OTHER_VERSION, OTHER_LIGHTNING])
def test_everything_can_be_used_after_quick_imports(before: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", before + PROGRAM],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == f"2.0 {UNUSED!r}\n", done.stderr


def test_nothing_changes_if_lightning_is_loaded() -> None:
    import gc

    import pytorch_lightning  # noqa: F401

    frozen = gc.get_freeze_count()
    with quick_imports():
        assert gc.isenabled()
    assert gc.get_freeze_count() == frozen
