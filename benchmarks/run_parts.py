"""Measures time and memory of a run's parts: a step, the candidate search, the joint step.

python -m benchmarks run-parts data=zh ratio=0.05 [--steps 100] [--json FILE]
"""

import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.command import bench_parser, write_numbers
from emea.cli.arguments import AT_LEAST_ONE, number_in
from emea.config.composition import composed
from emea.config.run_config import RunConfig
from emea.em.em_callback import Observer
from emea.em.reports import IterationReport
from emea.fit.step_block import Labels
from emea.record.pair_file import load_pair
from emea.run.building import BuiltRun, build_run, draw_split
from emea.runtime.device import choose_device, keep_freed_memory, peak_memory_mb

WARM_UP = 5


def main(arguments: Sequence[str]) -> None:
    """Run the measurements, print them and write them to a file on request."""
    parser = bench_parser("run-parts", __doc__)
    parser.add_argument(
        "overrides", nargs="*", help="config of the run, as for emea run"
    )
    parser.add_argument(
        "--steps",
        type=number_in(AT_LEAST_ONE, int),
        default=100,
        help="optimisation steps to time",
    )
    options = parser.parse_args(arguments)
    keep_freed_memory()
    numbers = measure(options.overrides, options.steps)
    for name, value in numbers.items():
        print(
            f"{name:<28} {value:,.2f}"
            if isinstance(value, float)
            else f"{name:<28} {value}"
        )
    write_numbers(options.json, numbers)


def measure(overrides: list[str], num_steps: int) -> dict[str, Any]:
    """Return milliseconds per step, seconds of search and joint step, and memory."""
    config = composed(overrides)
    device = choose_device(config.trainer.accelerator)
    start = time.perf_counter()
    pair = load_pair(config)
    loaded = time.perf_counter()
    reports: list[IterationReport] = []
    settings = RunConfig.of(config)
    visible = settings.option("protocol")()(draw_split(settings, pair))
    parts = build_run(settings, pair, visible, observer=reports.append, device=device)
    parts.module.to(device)
    built = time.perf_counter()
    step = ms_per_step(parts, parts.data.links.to(device), num_steps)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(2):  # the first call compiles kernels and allocates memory
        parts.em.between_fits(parts.module, parts.data)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "data": pair.name,
        "device": str(device),
        "load_s": loaded - start,
        "build_s": built - loaded,
        "ms_per_step": step,
        "search_s": reports[-1].seconds["search"],
        "joint_s": reports[-1].seconds["joint"],
        "search_and_joint_extra_mb": (after - before) / 1024,
        "peak_memory_mb": peak_memory_mb(device),
    }


def built_parts(
    overrides: list[str], observer: Observer = lambda report: None
) -> BuiltRun:
    """Return the parts of a run, on its device."""
    config = composed(overrides)
    settings = RunConfig.of(config)
    pair = load_pair(config)
    visible = settings.option("protocol")()(draw_split(settings, pair))
    device = choose_device(config.trainer.accelerator)
    parts = build_run(settings, pair, visible, observer=observer, device=device)
    parts.module.to(device)
    return parts


def training_step(parts: BuiltRun, links: Tensor) -> Callable[[], Tensor]:
    """Return an optimisation step, as training runs it."""
    module = parts.module
    return module.new_step([Labels(links)], module.configure_optimizers())


def ms_per_step(parts: BuiltRun, links: Tensor, num_steps: int) -> float:
    """Return the mean time of an optimisation step, as training runs it."""
    step = training_step(parts, links)
    for _ in range(WARM_UP):
        step()
    _wait(links)
    start = time.perf_counter()
    for _ in range(num_steps):
        step()
    _wait(links)
    return (time.perf_counter() - start) / num_steps * 1000


def _wait(tensor: Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize()
