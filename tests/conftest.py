"""Settings shared by all tests."""

import contextlib
import copy
import gc
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

# tiny models: a second thread costs more than it brings
os.environ.setdefault("OMP_NUM_THREADS", "1")

with contextlib.suppress(ImportError):  # machines that only run the GPU tests may lack hypothesis
    from hypothesis import settings

    # a busy machine is no failure
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")


REPOSITORY = Path(__file__).resolve().parents[1]
USERS_FILES = ("outputs", "multirun", "mlruns", "mlflow.db*", "lightning_logs", "report")
"""Where runs of the user write if they are started in the repository."""


@pytest.fixture(scope="session", autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """Fail if tests write where the user's own runs are: they must use their temporary folders."""

    def written() -> set[tuple[str, int]]:
        tops = [path for pattern in USERS_FILES for path in REPOSITORY.glob(pattern)]
        paths = [*tops, *(path for top in tops for path in top.rglob("*"))]
        files = [path for path in paths if path.is_file()]
        return {(str(path.relative_to(REPOSITORY)), path.stat().st_mtime_ns) for path in files}

    before = written()
    yield
    left = sorted(name for name, _ in written() - before)
    if left:
        pytest.fail(
            f"{len(left)} files were written in the repository during the tests, such as "
            f"{', '.join(left[:3])}. A test must write to tmp_path only; if a run of your own "
            "made them, run the tests again.",
            pytrace=False,
        )


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


@pytest.fixture(scope="session", autouse=True)
def _composed_once() -> Iterator[None]:
    """Hydra takes a fifth of a second to compose what many tests ask for: it is kept.

    Not where a test has options in a folder of its own, which it may change.
    """
    from emea.pipeline import config_files

    compose, kept = config_files.compose, {}

    def composed(name: str, overrides: Sequence[str], **options: Any) -> Any:
        if any(text.startswith("hydra.searchpath") for text in overrides):
            return compose(name, list(overrides), **options)
        key = (name, *overrides, *options.items())
        if key not in kept:
            kept[key] = compose(name, list(overrides), **options)
        return copy.deepcopy(kept[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config_files, "compose", composed)
        yield


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
