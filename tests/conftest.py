"""Settings shared by all tests."""

import contextlib
import copy
import gc
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]

# tiny models: a second thread costs more than it brings
os.environ.setdefault("OMP_NUM_THREADS", "1")

with contextlib.suppress(ImportError):  # machines that only run the GPU tests may lack hypothesis
    from hypothesis import settings

    # no deadlines, because a machine may be busy; `make test-all` asks for the thorough profile
    settings.register_profile("quick", deadline=None, max_examples=25)
    settings.register_profile("thorough", deadline=None, max_examples=100)
    settings.load_profile("quick")


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
def _cheap_runs() -> Iterator[None]:
    """Does once what each of the many small runs repeats with the same result.

    - Hydra takes 0.2 seconds to compose the options that many tests choose.
    - Lightning searches all installed packages for callbacks for each Trainer.
    - git describes the working tree for each run.
    - No test switches the machine off, so files need not reach the disk.
    """
    from lightning_fabric.utilities import registry

    from emea.config import files as config_files
    from emea.record import provenance

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config_files, "compose", _kept_compose(config_files.compose))
        patch.setattr(registry, "entry_points", cache(registry.entry_points))
        patch.setattr(provenance, "_git", _kept_git(provenance._git))
        patch.setattr(os, "fsync", lambda _: None)
        yield


def _kept_compose(compose: Callable[..., Any]) -> Callable[..., Any]:
    """Composes each option once, puts them together, and sets single values as Hydra does.

    Hydra itself composes what has options in a test's own folder, which the test may change, what
    asks for Hydra's own settings, and options that set more than their own group.
    """
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import OmegaConf

    from emea.config.files import CONF

    parser = OverridesParser.create()

    def is_value(text: str) -> bool:
        key = text.lstrip("+~").partition("=")[0]
        return bool(re.fullmatch(r"[\w.]+", key)) and not (CONF / key).is_dir()

    @cache
    def chosen(*choices: str) -> tuple[Any, dict[str, Any]]:
        config = compose("config", list(choices))
        return config, OmegaConf.to_container(config)

    @cache
    def sets_only_its_group(choice: str) -> bool:
        group, (_, usual), (_, changed) = choice.partition("=")[0], chosen(), chosen(choice)
        return group in usual and changed == usual | {group: changed.get(group)}

    @cache
    def put_together(*choices: str) -> Any:
        if len(choices) < 2 or not all(map(sets_only_its_group, choices)):
            return chosen(*choices)[0]
        config = copy.deepcopy(chosen()[0])
        for choice in choices:
            group = choice.partition("=")[0]
            node = copy.deepcopy(chosen(choice)[0]._get_node(group))
            node._set_parent(config)
            config._content[group] = node
        return config

    def composed(name: str, overrides: Sequence[str], **options: Any) -> Any:
        values = parser.parse_overrides([text for text in overrides if is_value(text)])
        if (
            options.get("return_hydra_config")
            or any("hydra" in text for text in overrides)
            or any(value.is_sweep_override() for value in values)
        ):
            return compose(name, list(overrides), **options)
        config = copy.deepcopy(put_together(*(text for text in overrides if not is_value(text))))
        ConfigLoaderImpl._apply_overrides_to_config(values, config)
        return config

    return composed


def _kept_git(git: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps what git says about this checkout, not about those that tests create."""
    kept = cache(git)

    def asked(root: Path, *arguments: str) -> Any:
        return (kept if root == ROOT else git)(root, *arguments)

    return asked


def pytest_collection_finish() -> None:
    """Every run collects garbage, which takes a third of a small one's time.

    Most of it goes to the modules that all tests together have loaded: they stay.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def store_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sqlite store with tables and no runs, to be copied: creating one takes seconds."""
    from emea.record.mlflow_client import open_client

    path = tmp_path_factory.mktemp("template") / "mlflow.db"
    open_client(f"sqlite:///{path}")
    return path


@pytest.fixture
def cuda() -> Any:
    """The CUDA device, or a skip where there is none."""
    import torch  # not before the number of threads is set

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return torch.device("cuda")


@pytest.fixture
def tiny_config() -> Callable[..., Any]:
    """A config that runs in seconds, with further overrides."""
    from .small_runs import tiny_config_of

    return tiny_config_of
