"""Measures where a run's time goes: training steps, EM, Lightning, MLflow and files.

python -m benchmarks overhead [OVERRIDES...] [--json FILE]
"""

import functools
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from pytorch_lightning.strategies import Strategy

from benchmarks.command import bench_parser, write_numbers
from benchmarks.start_up import seconds_of
from emea.config.composition import composed
from emea.em.em_callback import EMCallback
from emea.fit import training_loop
from emea.fit.alignment_module import AlignmentModule
from emea.fit.lightning_settings import LightningSettings
from emea.fit.optimisation_step import GraphedStep, GraphMemory
from emea.record.mlflow_tracker import MlflowTracker
from emea.run import job
from emea.run.observer import EvaluationObserver
from emea.run.result import RunResult

PARTS: tuple[tuple[Any, str, str], ...] = (
    (training_loop, "fit_stage", "fit"),
    (AlignmentModule, "training_step", "steps"),
    (EMCallback, "between_fits", "em"),
    (EvaluationObserver, "__call__", "evaluation"),
    (LightningSettings, "trainer", "trainers"),
    (Strategy, "setup", "setup"),
    (GraphedStep, "_on_side_stream", "eager_steps"),
    (GraphMemory, "capture", "capture"),
    (training_loop, "save_checkpoint", "checkpoints"),
    (RunResult, "write_answer", "files"),
    (MlflowTracker, "start", "mlflow"),
    (MlflowTracker, "log", "mlflow"),
    (MlflowTracker, "finish", "mlflow"),
)

DETAILS = ("trainers", "setup", "eager_steps", "capture")
"""Parts of the steps and of Lightning's work, which are not added up; two of them need a GPU."""


def main(arguments: Sequence[str]) -> None:
    """Run the measurements, print them and write them to a file on request."""
    parser = bench_parser("overhead", __doc__)
    parser.add_argument(
        "overrides", nargs="*", help="config of the run, as for emea run"
    )
    options = parser.parse_args(arguments)
    numbers = {**shares(options.overrides), **start_up()}
    for name, value in numbers.items():
        print(
            f"{name:<22} {value}"
            if isinstance(value, str)
            else f"{name:<22} {value:.3f}"
        )
    write_numbers(options.json, numbers)


def shares(overrides: list[str]) -> dict[str, Any]:
    """Return the seconds that a tracked run spent on each activity."""
    with tempfile.TemporaryDirectory() as folder:
        store = [
            f"tracking.uri=sqlite:///{folder}/mlflow.db",
            f"tracking.artifact_root={folder}",
        ]
        config = composed([*overrides, "tracking=mlflow", *store])
        with timed_parts() as spent:
            start = time.perf_counter()
            job.run_job(config, Path(folder) / "run")
            total = time.perf_counter() - start
    em = spent["em"] - spent["evaluation"]
    lightning = spent["fit"] - spent["steps"] - spent["em"]
    named = {
        "steps_s": spent["steps"],
        "em_s": em,
        "evaluation_s": spent["evaluation"],
        "lightning_s": lightning,
        "mlflow_s": spent["mlflow"],
        "checkpoints_and_files_s": spent["checkpoints"] + spent["files"],
    }
    added = lightning + named["mlflow_s"] + named["checkpoints_and_files_s"]
    return {
        "overrides": " ".join(overrides),
        "total_s": total,
        **named,
        "rest_s": total - sum(named.values()),
        **{f"{part}_s": spent[part] for part in DETAILS},
        "share_of_overhead": added / total,
    }


@contextmanager
def timed_parts() -> Iterator[dict[str, float]]:
    """Measure the seconds spent inside each part within this context."""
    spent: dict[str, float] = defaultdict(float)
    with ExitStack() as stack:
        for owner, name, part in PARTS:
            work = _timed(getattr(owner, name), part, spent)
            stack.enter_context(mock.patch.object(owner, name, work))
        yield spent


def _timed(
    work: Callable[..., Any], part: str, spent: dict[str, float]
) -> Callable[..., Any]:
    @functools.wraps(work)
    def timed(*arguments: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return work(*arguments, **named)
        finally:
            spent[part] += time.perf_counter() - start

    return timed


def start_up() -> dict[str, float]:
    """Return the seconds until ``--help`` has been printed, and until the package is imported."""
    commands = {
        "help_s": ["-m", "emea", "run", "--help"],
        "import_s": ["-c", "import emea"],
    }
    return {
        name: min(seconds_of([sys.executable, *arguments]) for _ in range(3))
        for name, arguments in commands.items()
    }
