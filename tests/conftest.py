"""Settings shared by all tests."""

import contextlib
import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

# tiny models: a second thread costs more than it brings
os.environ.setdefault("OMP_NUM_THREADS", "1")

with contextlib.suppress(ImportError):  # machines that only run the GPU tests may lack hypothesis
    from hypothesis import settings

    # a busy machine is no failure
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests that look at pages; they are skipped where it is missing."""
    from .browser import launched

    with launched() as chromium:
        yield chromium


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """A fresh page in it, whose requests and errors are written down."""
    from .browser import Visit

    fresh = Visit(browser)
    yield fresh
    fresh.close()


def pytest_collection_finish() -> None:
    """Every run collects garbage, which takes a third of a small one's time.

    Most of it goes to the modules that all tests together have loaded: they stay.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def cuda() -> Any:
    """The CUDA device, or a skip where there is none."""
    import torch  # not before the number of threads is set

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return torch.device("cuda")
