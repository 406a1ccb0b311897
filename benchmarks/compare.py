"""Compare a training step, sparse products, the PARIS rule and searches with alternatives.

    python -m benchmarks compare [--pair OVERRIDES...] [--sizes N...] [--device cuda] [--json FILE]

Both sides of a ratio are measured in turn within one run, so load on the machine affects both.
Numbers are printed as they are measured. "Former" is the form that an earlier version used.
"""

import logging
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from benchmarks.command import bench_parser, write_numbers
from benchmarks.compare_search import (
    NUM_CANDIDATES,
    SEARCHED,
    approximate_searches,
    light_ea_embeddings,
    scanned_search_ratio,
    search_by_csls,
    timed,
)
from benchmarks.direct_rrea import DirectRREA
from benchmarks.loop_paris import loop_values, neighbours_of
from emea.cli.arguments import AT_LEAST_ONE, number_in
from emea.config.composition import composed
from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.encoders.joint_graph import join_graphs
from emea.encoders.rmsprop import RMSprop
from emea.encoders.rrea import RREA, MarginObjective
from emea.encoders.settings import MarginSettings, RREASettings
from emea.fit.optimisation_step import GraphedStep, GraphMemory, OptimisationStep
from emea.kernels import choice, sparse_pattern
from emea.matching.beliefs import Beliefs
from emea.record.pair_file import load_pair
from emea.rules.paris import PARIS
from emea.rules.rule import RuleView
from emea.rules.settings import ParisRuleSettings
from emea.runtime.device import forget_peak_memory, keep_freed_memory, peak_memory_mb

logger = logging.getLogger(__name__)

NUM_LOOPED = 200
"""Entities of the loop; its time is scaled to all entities."""

WARM_UP = {"cpu": 1, "cuda": 5}
"""Steps before the first measured one: memory is mapped, kernels compile, graphs are captured."""

LATE = 30
"""Steps of training after which few pairs are inside the margin."""

SIZES = [5000, 10000, 20000, 50000, 100000]


def main(arguments: Sequence[str]) -> None:
    """Run the measurements, print them and write them to a file on request."""
    parser = bench_parser("compare", __doc__)
    parser.add_argument("--pair", nargs="*", default=["data.num_entities=20000"])
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--repeats", type=number_in(AT_LEAST_ONE, int), default=5)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args(arguments)
    keep_freed_memory()
    device = torch.device(options.device)
    pair = load_pair(composed(options.pair))
    numbers: dict[str, Any] = {}
    for part in _parts(pair, options.sizes, options.repeats, device):
        for name, value in part.items():
            shown = f"{value:,.4g}" if isinstance(value, float) else value
            print(f"{name:<46} {shown}", flush=True)
        numbers |= part
    write_numbers(options.json, numbers)


def _parts(
    pair: GraphPair, sizes: list[int], repeats: int, device: torch.device
) -> Iterator[dict[str, Any]]:
    """Measure one part after the other."""
    entities = f"{pair.source.num_entities} + {pair.target.num_entities} entities"
    yield {"pair": f"{pair.name}, {entities}", "device": device.type}
    yield step_ratio(pair, repeats, device)
    yield joint_ratio(pair, repeats, device)
    if device.type == "cpu":
        yield approximate_searches(*light_ea_embeddings(pair))
    else:
        yield scanned_search_ratio(pair, repeats, device)
    yield from growth(sizes, repeats, device)


def step_ratio(pair: GraphPair, repeats: int, device: torch.device) -> dict[str, float]:
    """Measure a training step, and the same step in other forms.

    The edge-materialising form needs a tensor of edges x dimension. On a CPU, the step is also
    measured without compiled kernels, and with torch's sparse products in addition. Late steps are
    measured again, because they skip entities without a gradient.
    """
    logger.info("Measuring a training step of %s", pair.name)
    ours, direct = _steps(pair, device)
    works = {"step": ours, "edge-materialising step": direct}
    if device.type == "cpu":
        works["step without compiled kernels"] = partial(_without_kernels, ours)
        works["step with former sparse products"] = partial(_with_former_products, ours)
    for _ in range(WARM_UP[device.type]):
        for work in works.values():
            work()
    times = [[timed(work, device) for work in works.values()] for _ in range(repeats)]
    medians = dict(
        zip(works, map(statistics.median, zip(*times, strict=True)), strict=True)
    )
    numbers = {f"{name}, ms": 1000 * seconds for name, seconds in medians.items()}
    numbers["step ratio"] = medians["edge-materialising step"] / medians["step"]
    for form in ("without compiled kernels", "with former sparse products"):
        if f"step {form}" in medians:
            numbers[f"step ratio to one {form}"] = (
                medians[f"step {form}"] / medians["step"]
            )
    for _ in range(LATE):
        ours()
    late = statistics.median(timed(ours, device) for _ in range(repeats))
    numbers[f"step after {LATE} steps, ms"] = 1000 * late
    numbers["ratio of the first steps to late ones"] = medians["step"] / late
    return numbers


def _without_kernels(step: Callable[[], object]) -> None:
    with mock.patch.object(choice._Switch, "allows_compiled", False):
        step()


def _with_former_products(step: Callable[[], object]) -> None:
    with mock.patch.object(sparse_pattern, "uses_bags", lambda *_: False):
        _without_kernels(step)


def joint_ratio(
    pair: GraphPair, repeats: int, device: torch.device
) -> dict[str, float]:
    """Compare the PARIS rule for all entities with a loop over some of them."""
    logger.info("Measuring the PARIS rule of %s", pair.name)
    rule, beliefs = _rule(pair, device)
    work = partial(_joint, rule, beliefs)
    values = work().cpu()
    joint = statistics.median(timed(work, device) for _ in range(repeats))
    source, target = neighbours_of(pair.source), neighbours_of(pair.target)
    looped = np.random.default_rng(0).choice(
        pair.source.num_entities, NUM_LOOPED, replace=False
    )
    start = time.perf_counter()
    expected = loop_values(looped.tolist(), source, target, beliefs, rule)
    loop = (time.perf_counter() - start) * pair.source.num_entities / NUM_LOOPED
    difference = (values[looped, :, 0] - torch.tensor(expected)).abs().max()
    if difference > 1e-4:
        raise AssertionError(
            f"the loop computes other values: they differ by {difference}"
        )
    return {
        "joint, s": joint,
        "per-candidate loop, s": loop,
        "joint ratio": loop / joint,
    }


def growth(
    sizes: list[int], repeats: int, device: torch.device
) -> Iterator[dict[str, float]]:
    """Measure time and peak memory at several sizes, then fit exponents to the times."""
    units = (
        ("step", "ms", 1000),
        ("joint", "s", 1),
        ("search", "s", 1),
        ("memory", "MB", 1),
    )
    measured = []
    for size in sizes:
        row = _at_size(size, repeats, device)
        measured.append(row)
        yield {
            f"{name} at {size} + {size}, {unit}": row[name] * scale
            for name, unit, scale in units
        }
    titles = {
        "step": "step",
        "joint": "joint module",
        "search": "exact candidate search",
    }
    yield {
        f"exponent of the {title}": _exponent(sizes, [row[name] for row in measured])
        for name, title in titles.items()
    }


def _at_size(size: int, repeats: int, device: torch.device) -> dict[str, float]:
    logger.info("Measuring a pair of %s + %s entities", f"{size:,}", f"{size:,}")
    pair = synthetic_pair(num_entities=size)
    forget_peak_memory(device)
    ours, _ = _steps(pair, device)
    for _ in range(WARM_UP[device.type]):
        ours()
    # use the shortest of several times, because load on the machine only adds time
    step = min(timed(ours, device) for _ in range(repeats))
    memory = peak_memory_mb(device)
    joint = partial(_joint, *_rule(pair, device))
    joint()
    joint_s = min(timed(joint, device) for _ in range(repeats))
    search = partial(search_by_csls, pair, device)
    search()
    search_s = timed(search, device) * size / min(size, SEARCHED)
    return {"step": step, "joint": joint_s, "search": search_s, "memory": memory}


def _steps(
    pair: GraphPair, device: torch.device
) -> tuple[Callable[[], object], Callable[[], object]]:
    graph = join_graphs(pair)
    torch.manual_seed(0)
    model = RREA(graph, **asdict(RREASettings())).to(device)
    direct = DirectRREA(graph, model).to(device)
    objective = MarginObjective(**asdict(MarginSettings()))
    joint = pair.links[: len(pair.links) // 20] + np.array([0, graph.num_source])
    links = torch.from_numpy(joint).to(device)
    settings: dict[str, Any] = {"lr": 0.005, "alpha": 0.9, "eps": 1e-7}
    optimizer = RMSprop(model.parameters(), **settings)
    step = OptimisationStep(partial(objective, model, links), optimizer)
    ours = (
        GraphedStep(step, [optimizer], GraphMemory()) if device.type == "cuda" else step
    )
    usual = torch.optim.RMSprop(model.parameters(), **settings)
    return ours, OptimisationStep(partial(objective, direct, links), usual)


def _rule(pair: GraphPair, device: torch.device) -> tuple[PARIS, Beliefs]:
    beliefs = _beliefs(pair)
    on_device = Beliefs(beliefs.targets.to(device), beliefs.probs.to(device))
    return PARIS(pair, **asdict(ParisRuleSettings()), device=device), on_device


def _beliefs(pair: GraphPair) -> Beliefs:
    """Return distinct candidates with the correct one first, as a good model does."""
    generator = torch.Generator().manual_seed(0)
    num_source, num_target = pair.source.num_entities, pair.target.num_entities
    first = torch.randint(num_target, (num_source,), generator=generator)
    links = torch.from_numpy(pair.links.copy())
    first[links[:, 0]] = links[:, 1]
    spread = torch.arange(NUM_CANDIDATES) * (num_target // NUM_CANDIDATES)
    targets = (first.unsqueeze(1) + spread) % num_target
    probs = (
        torch.softmax(torch.arange(NUM_CANDIDATES, 0, -1.0), 0)
        .expand(targets.shape)
        .clone()
    )
    return Beliefs(targets=targets, probs=probs)


def _joint(rule: PARIS, beliefs: Beliefs) -> Tensor:
    rule.prepare(RuleView(beliefs, torch.zeros(0)))
    return rule(beliefs)


def _exponent(sizes: list[int], times: list[float]) -> float:
    return float(
        np.polyfit([math.log(s) for s in sizes], [math.log(t) for t in times], 1)[0]
    )
