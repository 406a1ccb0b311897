"""Measures time, memory and accuracy of a run, after short runs that compile the kernels.

    python -m benchmarks whole-run data=zh ratio=0.05 [--json FILE]

A short run on synthetic graphs compiles the kernels; on a GPU, a shortened version of the measured
run follows it. The measured run is not tracked. Its time includes reading the files and writing the
records.
"""

import gc
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.command import bench_parser, write_numbers
from emea.config.composition import composed
from emea.config.run_config import member_nodes
from emea.em.em_callback import EMCallback
from emea.run.job import run_job
from emea.runtime.device import choose_device

SHORT = ["data=synthetic", "data.num_entities=1000", "em.iterations=1"]
SHORT += ["model.initial_epochs=5", "model.epochs_per_iteration=5", "search=exact"]

EPOCHS = ("initial_epochs", "epochs_per_iteration")
"""Settings of a model that are numbers of epochs."""

FEW_EPOCHS = 5
"""Largest number of epochs of each fit, and of each turn, of a shortened run."""

KEPT: tuple[str, ...] = (
    "data",
    "model",
    "rule",
    "em",
    "protocol",
    "search",
    "ratio",
    "num_links",
    "seconds",
)
KEPT += ("peak_memory_mb", "initial", "final", "seed", "split_seed")


def main(arguments: Sequence[str]) -> None:
    """Run the measurements, print them and write them to a file on request."""
    parser = bench_parser("whole-run", __doc__)
    parser.add_argument(
        "overrides", nargs="*", help="config of the run, as for emea run"
    )
    options = parser.parse_args(arguments)
    numbers = measure([*options.overrides, "tracking=none"])
    for name, value in numbers.items():
        print(f"{name:<20} {value}")
    write_numbers(options.json, numbers)


def measure(overrides: list[str]) -> dict[str, Any]:
    """Return the duration of a run and its parts, its memory and its accuracy."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        compile_kernels(overrides, Path(folder))
        gc.collect()
        compiled = time.perf_counter()
        config = composed(overrides)
        with reasoning_cpu_time() as spent, frozen_objects():
            result = run_job(config, Path(folder) / "run")
        metrics = result.metrics
        total = time.perf_counter() - compiled
    history = metrics["history"]
    parts = ("neural", "search", "joint", "evaluate")
    epochs = [config.model.initial_epochs, config.model.epochs_per_iteration]
    return {
        "overrides": " ".join(overrides),
        "warm_up_s": compiled - start,
        "total_s": total,
        **{
            f"{part}_s": sum(entry["seconds"][part] for entry in history)
            for part in parts
        },
        "joint_cpu_s": sum(spent),
        "epochs": f"{epochs[0]} + {len(history) - 1} x {epochs[1]}",
        "search_recall": history[-1].get("search_recall"),
        **{key: metrics[key] for key in KEPT},
    }


def compile_kernels(overrides: list[str], folder: Path) -> None:
    """Run a short job; on a GPU, also a short version of the measured run.

    Triton compiles some kernels again for other sizes: if those are divisible by 16 and the earlier
    ones are not, or the other way round.
    """
    run_job(composed(["tracking=none", *SHORT]), folder / "short")
    config = composed(overrides)
    if choose_device(config.trainer.accelerator).type == "cuda":
        run_job(shortened(config), folder / "shortened")


def shortened(config: Any) -> Any:
    """Return a config with few epochs, at most one EM iteration and one turn of self-training."""
    short = config.copy()
    limits = [
        (short.em, "iterations", 1),
        (short.training, "epochs_per_turn", FEW_EPOCHS),
    ]
    limits += [(short.training, "turns", 1)]
    for model in member_nodes(short):
        limits += [(model, name, FEW_EPOCHS) for name in EPOCHS]
    for section, name, most in limits:
        if name in section:
            section[name] = min(most, section[name])
    return short


@contextmanager
def frozen_objects() -> Iterator[None]:
    """Let the garbage collection skip all earlier objects, which a process of its own lacks."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def reasoning_cpu_time() -> Iterator[list[float]]:
    """Yield a list that receives the CPU time of each M- and E-step in this process."""
    spent: list[float] = []
    joint = EMCallback._joint

    def timed(*arguments: Any) -> Any:
        start = time.process_time()
        found = joint(*arguments)
        spent.append(time.process_time() - start)
        return found

    with patch.object(EMCallback, "_joint", timed):
        yield spent
