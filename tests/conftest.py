"""Settings shared by all tests."""

import contextlib
import copy
import gc
import importlib.util
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .missing_packages import missing_packages, pytest_configure

__all__ = ["pytest_configure"]

ROOT = Path(__file__).resolve().parents[1]

gc.disable()  # importing all modules creates no garbage; pytest_collection_finish enables it

# tiny models: a second thread costs more than it brings
os.environ.setdefault("OMP_NUM_THREADS", "1")

# without bytecode, each worker and each process that a test starts compiles all modules again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

with contextlib.suppress(
    ImportError
):  # machines that only run the GPU tests may lack hypothesis
    from hypothesis import settings

    # no deadlines, because a machine may be busy; `make test-all` asks for the thorough profile
    settings.register_profile("quick", deadline=None, max_examples=15)
    settings.register_profile("thorough", deadline=None, max_examples=100)
    settings.load_profile("quick")


REPOSITORY = Path(__file__).resolve().parents[1]
USERS_FILES = (
    "outputs",
    "multirun",
    "mlruns",
    "mlflow.db*",
    "lightning_logs",
    "report",
)
"""Where runs of the user write if they are started in the repository."""


@pytest.fixture(scope="module", params=["torch", "numba"])
def each_kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test with torch's operations only, and with compiled loops of any length."""
    from emea.kernels import choice

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "LEAST_OPERATIONS", 0)
        patch.setattr(choice._Switch, "allows_compiled", request.param == "numba")
        yield request.param


@pytest.fixture(params=[1, 100, 2**26], ids=["row by row", "few rows", "all rows"])
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Memory of a block, from one row of scores at a time to all at once."""
    from emea.matching import similarity

    monkeypatch.setitem(similarity.BLOCK_BYTES, "cpu", request.param)
    return int(request.param)


@pytest.fixture(scope="session", autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """Fail if tests write where the user's own runs are: they must use their temporary folders."""

    def written() -> set[tuple[str, int]]:
        tops = [path for pattern in USERS_FILES for path in REPOSITORY.glob(pattern)]
        paths = [*tops, *(path for top in tops for path in top.rglob("*"))]
        files = [path for path in paths if path.is_file()]
        return {
            (str(path.relative_to(REPOSITORY)), path.stat().st_mtime_ns)
            for path in files
        }

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

    - Hydra takes 0.2 seconds to compose the options that many tests choose. A fifth of it copies
      the store of registered configs, which no test changes.
    - Lightning searches all installed packages for callbacks for each Trainer.
    - git describes the working tree for each run.
    - No test switches the machine off, so files need not reach the disk.
    """
    if missing_packages():  # without them, there are no whole runs
        yield
        return
    from hydra.core.config_store import ConfigStore
    from lightning_fabric.utilities import registry

    from emea.config import composition
    from emea.record import provenance

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composition, "compose", _kept_compose(composition.compose))
        patch.setattr(
            ConfigStore, "__deepcopy__", lambda store, _: store, raising=False
        )
        patch.setattr(registry, "entry_points", cache(registry.entry_points))
        patch.setattr(provenance, "_git", _kept_git(provenance._git))
        patch.setattr(os, "fsync", lambda _: None)
        yield


def _kept_compose(compose: Callable[..., Any]) -> Callable[..., Any]:
    """Composes each option once by itself, and sets single values as Hydra does.

    Hydra itself composes what has options in a test's own folder, which the test may change, what
    asks for Hydra's own settings, and options that set more than their own group.
    """
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.defaults_list import create_defaults_list
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    from emea.config.composition import CONF

    parser = OverridesParser.create()
    quotes = "'\""

    def is_value(text: str) -> bool:
        key = text.lstrip("+~").partition("=")[0]
        return bool(re.fullmatch(r"[\w.]+", key)) and not (CONF / key).is_dir()

    @cache
    def chosen(*choices: str) -> Any:
        return compose("config", list(choices))

    @cache
    def own_values(choice: str) -> Any:
        """The values of an option, or ``None`` if it sets values of other groups, too."""
        group, _, option = choice.partition("=")
        loader = GlobalHydra.instance().config_loader()
        assert isinstance(loader, ConfigLoaderImpl)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # options have no _self_ in their defaults
                # like compose, but without Hydra's own settings, which take most of the time
                name, files = f"{group}/{option.strip(quotes)}", loader.repository
                found = create_defaults_list(files, name, [], False, False)
                config = loader._compose_config_from_defaults_list(
                    found.defaults, files
                )
        except HydraException:  # Hydra composes the whole config or refuses it
            return None
        return config._get_node(group) if list(config) == [group] else None

    @cache
    def put_together(*choices: str) -> bytes:
        """The config of some options, to be unpickled, which is faster than a deep copy."""
        groups = [choice.partition("=")[0] for choice in choices]
        # data sets choose options of other groups, and with the model they choose a schedule
        choosing = "data=", "model="
        shared = [
            one
            for one in choices
            if one.startswith(choosing) or own_values(one) is None
        ]
        # presets also set values of other groups
        if len(set(groups)) < len(groups) or not all(
            one.startswith(choosing) for one in shared
        ):
            return pickle.dumps(chosen(*choices))
        config = copy.deepcopy(chosen(*shared))
        for group, choice in zip(groups, choices, strict=True):
            if choice in shared:
                continue
            node = copy.deepcopy(own_values(choice))
            node._set_parent(config)
            config._content[group] = node
        return pickle.dumps(config)

    def composed(name: str, overrides: Sequence[str], **options: Any) -> Any:
        values = parser.parse_overrides([text for text in overrides if is_value(text)])
        if (
            options.get("return_hydra_config")
            or any("hydra" in text for text in overrides)
            or any(value.is_sweep_override() for value in values)
        ):
            return compose(name, list(overrides), **options)
        config = pickle.loads(
            put_together(*(text for text in overrides if not is_value(text)))
        )
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
    gc.enable()
    _freeze()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Do the same for what the tests of a file leave in caches and shared fixtures."""
    if nextitem is not None and nextitem.path != item.path:
        _freeze()


def _freeze() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def store_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sqlite store with tables and no runs, to be copied: creating one takes seconds."""
    from emea.record.mlflow_store import open_client

    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    path = shared / "template" / "mlflow.db"
    path.parent.mkdir(exist_ok=True)
    open_client(f"sqlite:///{path}")  # the first worker creates the tables
    _freeze()  # MLflow loads as many modules as torch
    return path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Makes the run of a kind, once; tests must not change its folder."""
    from .finished_runs import finished_in

    return finished_in(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def cuda() -> Any:
    """The CUDA device, or a skip where there is none."""
    import torch  # not before the number of threads is set

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return torch.device("cuda")


@pytest.fixture(params=["triton", "torch"])
def cuda_kernels(
    request: pytest.FixtureRequest, cuda: Any, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """The CUDA device, with Triton kernels and with torch's operations only."""
    from emea.kernels import choice

    monkeypatch.setattr(choice._Switch, "allows_compiled", request.param == "triton")
    assert choice.kernels_of(cuda) == request.param
    return cuda


@pytest.fixture
def interpreted() -> Callable[..., None]:
    """Runs code in a process that interprets Triton kernels on the CPU; skips without Triton."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}

    def run(code: str, *arguments: str | Path) -> None:
        subprocess.run(
            [sys.executable, "-c", code, *arguments], check=True, env=environment
        )

    return run


@pytest.fixture
def tiny_config() -> Callable[..., Any]:
    """A config that runs in seconds, with further overrides."""
    from .small_runs import tiny_config_of

    return tiny_config_of


VARIANTS = {
    "test_decision.py::test_file_and_numbers_agree": 1,
    "test_decision.py::test_the_matching_of_a_baseline_is_its_answer": 1,
    "test_baseline_runs.py::test_a_run_leaves_its_files": 1,
    "test_checkpoint.py::test_resuming_from_a_checkpoint_equals_never_stopping": 1,
    "test_observer.py::test_a_model_is_reported_before_and_after": 1,
    "test_config_contract.py::test_a_variant_makes_a_config_that_can_run": 2,
    "test_dual.py::test_any_single_part_can_be_off": 1,
    "test_encoder_contract.py::test_what_an_encoder_may_not_return": 3,
    "test_encoder_contract.py::test_what_an_encoder_may_return": 2,
    "test_every_option.py::test_em_runs": 4,
    "test_every_option.py::test_neural_models_run_without_em": 3,
    "test_explain.py::test_every_kind_of_run_is_explained": 1,
    "test_explainer.py::test_evidence_is_what_the_rule_gives": 1,
    "test_explainer.py::test_the_answer_is_the_alignments": 4,
    "test_explainer.py::test_two_way_evidence_and_coverage": 1,
    "test_answers_of_runs.py::test_a_finished_run_predicts_what_it_wrote": 1,
    "test_answers_of_runs.py::test_another_decoding_answers_as_a_run_with_it": 3,
    "test_finished_run.py::test_a_damaged_file_is_reported": 4,
    "test_finished_run.py::test_a_run_comes_back_with_what_it_answered": 1,
    "test_fuzzed_runs.py::test_folders_of_runs": 2,
    "test_hard_cases.py::test_two_way_bears_extremes": 1,
    "test_job.py::test_out_of_memory_ends_with_one_sentence_of_advice": 2,
    "test_job.py::test_weights_that_saw_other_links_are_refused": 1,
    "test_match_model.py::test_fit_equals_a_general_optimiser": 8,
    "test_own_graphs.py::test_test_links_change_no_prediction": 1,
    "test_own_graphs.py::test_without_test_links_a_run_predicts": 1,
    "test_own_options.py::test_a_guides_first_command_runs": 1,
    "test_recorded_runs.py::test_a_folders_name_says_pair_ratio_and_split": 3,
    "test_recorded_runs.py::test_runs_are_of_options_that_exist": 2,
    "test_recorded_values.py::test_a_run_is_restored_completely": 3,
    "test_recorded_values.py::test_all_checksums_match_and_all_links_are_known": 3,
    "test_job.py::test_a_cpu_gives_the_same_bits_again": 1,
    "test_resuming.py::test_a_run_of_other_code_or_data_is_kept_and_is_not_resumed": 1,
    "test_resuming.py::test_a_signal_during_training_ends_the_run": 1,
    "test_run.py::test_a_single_run_is_refused_before_its_folder_exists": 3,
    "test_decoding.py::test_after_many_rounds_both_sides_are_normalised": 3,
    "test_smoke.py::test_the_smoke_variant_sweeps_over_what_the_experiment_does": 1,
    "test_stored_parts.py::test_links_that_were_cut_again_are_refused": 1,
    "test_two_way.py::test_new_names_of_entities_change_nothing_but_the_names": 8,
    "test_variational_identities.py::test_q_star_is_the_best_row_for_one_entity": 3,
    "test_wall.py::test_without_em_only_a_released_pool_changes_the_weights": 1,
    "test_wall.py::test_relabelling_entities_changes_no_metric": 1,
}
"""Tests of whole runs, and how many of their variants run by default; the others are slow."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what the fault tests tried and what came out.

    A fault test records one row: ``record_property("faults", (what, number, {outcome: number}))``.
    """
    reports = [
        report for listed in terminalreporter.stats.values() for report in listed
    ]
    found = [
        pair for report in reports for pair in getattr(report, "user_properties", ())
    ]
    rows = sorted({json.dumps(row) for name, row in found if name == "faults"})
    if not rows:
        return
    terminalreporter.section("faults")
    for what, tried, outcomes in map(json.loads, rows):
        ends = ", ".join(
            f"{number} {outcome}" for outcome, number in sorted(outcomes.items())
        )
        terminalreporter.write_line(f"{what}: {tried} tried; {ends}")


NIGHTLY = pytest.StashKey[list[str]]()
"""The collected tests that CI leaves out, whether they are selected or not."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Mark the variants beyond the first ones as slow, before markers select tests."""
    config.stash[NIGHTLY] = [
        item.nodeid for item in items if item.get_closest_marker("nightly")
    ]
    seen: Counter[str] = Counter()
    for item in items:
        name = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
        if name in VARIANTS and item.get_closest_marker("slow") is None:
            seen[name] += 1
            if seen[name] > VARIANTS[name]:
                item.add_marker(pytest.mark.slow)


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Handle signals in the usual way, even if the tests were started with nohup or in a script.

    nohup ignores SIGHUP, and a script ignores SIGINT of jobs in its background. Processes that a
    test starts inherit this.
    """
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGHUP: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def make_pair() -> Callable[..., Any]:
    """Draws a pair of random graphs with loops, multi-edges and repeated triples.

    The last two entities of each side have no triple. Entity i is linked to entity i.
    """

    import numpy as np

    from emea.data.graph import KnowledgeGraph
    from emea.data.graph_pair import GraphPair

    def make(
        seed: int = 0,
        num_entities: int = 9,
        num_relations: int = 3,
        num_triples: int = 20,
    ) -> GraphPair:
        rng = np.random.default_rng(seed)
        graphs = []
        for extra in (0, 1):
            ends = rng.integers(0, num_entities + extra - 2, (num_triples, 2))
            relations = rng.integers(0, num_relations, num_triples)
            triples = np.stack([ends[:, 0], relations, ends[:, 1]], axis=1)
            head, relation, tail = triples[0]
            special = [
                [head, relation, tail],
                [tail, relation, head],
                [head, relation, head],
            ]
            triples = np.concatenate([triples, special])
            graphs.append(KnowledgeGraph(triples, num_entities + extra, num_relations))
        links = np.repeat(np.arange(num_entities)[:, None], 2, axis=1)
        return GraphPair("random", *graphs, links=links)

    return make
