"""Our step and our joint module against the direct forms, and their growth with size.

    emea bench compare [--pair OVERRIDES...] [--sizes N...] [--device cuda] [--json FILE]

All ratios are measured side by side in one run, so a busy machine moves both.
"""

import argparse
import logging
import math
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from emea.bench.direct_rrea import DirectRREA
from emea.bench.loop_paris import loop_values, neighbours_of
from emea.config.instantiate import load_pair
from emea.config.overrides import composed
from emea.config.schema import register_schema
from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.encoders.joint_graph import join_graphs
from emea.encoders.margin_objective import MarginObjective
from emea.encoders.optimisation_step import GraphedStep, OptimisationStep
from emea.encoders.rmsprop import RMSprop
from emea.encoders.rrea import RREA
from emea.matching.beliefs import Beliefs
from emea.matching.candidates import top_candidates
from emea.matching.csls import CSLS
from emea.record.atomic import write_json
from emea.record.provenance import provenance
from emea.rules.paris import PARIS
from emea.rules.rule import RuleView
from emea.run.device import forget_peak_memory, keep_freed_memory, peak_memory_mb

logger = logging.getLogger(__name__)

NUM_CANDIDATES = 10
NUM_LOOPED = 200
"""Entities the loop works on; its time is scaled to all of them."""

WARM_UP = {"cpu": 1, "cuda": 5}
"""Steps before the first that counts: memory is mapped, kernels compile, graphs are captured."""

SEARCHED = 2000
"""Source entities whose search is timed; the time is scaled to all of them."""

SIZES = [5000, 10000, 20000, 50000, 100000]


def main(arguments: Sequence[str]) -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(
        prog="emea bench compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pair", nargs="*", default=["data.num_entities=20000"])
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    register_schema()
    keep_freed_memory()
    device = torch.device(options.device)
    pair = load_pair(composed(options.pair))
    numbers: dict[str, Any] = {
        "pair": f"{pair.name}, {pair.source.num_entities} + {pair.target.num_entities} entities",
        "device": options.device,
        **step_ratio(pair, options.repeats, device),
        **joint_ratio(pair, options.repeats, device),
        **growth(options.sizes, options.repeats, device),
    }
    for name, value in numbers.items():
        print(f"{name:<34} {value:,.4g}" if isinstance(value, float) else f"{name:<34} {value}")
    if options.json:
        write_json(options.json, {**numbers, **provenance()})


def step_ratio(pair: GraphPair, repeats: int, device: torch.device) -> dict[str, float]:
    """An optimisation step, as training runs it, against the edge-materialising form's."""
    logger.info("measuring a training step of %s", pair.name)
    ours, direct = _steps(pair, device)
    for _ in range(WARM_UP[device.type]):
        ours()
        direct()
    times = [(_timed(ours, device), _timed(direct, device)) for _ in range(repeats)]
    ours_s, direct_s = (statistics.median(column) for column in zip(*times, strict=True))
    return {
        "step, ms": 1000 * ours_s,
        "edge-materialising step, ms": 1000 * direct_s,
        "step ratio": direct_s / ours_s,
    }


def joint_ratio(pair: GraphPair, repeats: int, device: torch.device) -> dict[str, float]:
    """The PARIS rule for all entities against the loop over some of them."""
    logger.info("measuring the PARIS rule of %s", pair.name)
    rule, beliefs = _rule(pair, device)
    work = partial(_joint, rule, beliefs)
    values = work().cpu()
    joint = statistics.median(_timed(work, device) for _ in range(repeats))
    source, target = neighbours_of(pair.source), neighbours_of(pair.target)
    looped = np.random.default_rng(0).choice(pair.source.num_entities, NUM_LOOPED, replace=False)
    start = time.perf_counter()
    expected = loop_values(looped.tolist(), source, target, beliefs, rule)
    loop = (time.perf_counter() - start) * pair.source.num_entities / NUM_LOOPED
    difference = (values[looped, :, 0] - torch.tensor(expected)).abs().max()
    if difference > 1e-4:
        raise AssertionError(f"the loop gives other values: {difference}")
    return {"joint, s": joint, "per-candidate loop, s": loop, "joint ratio": loop / joint}


def growth(sizes: list[int], repeats: int, device: torch.device) -> dict[str, float]:
    """Time at several sizes and the exponents fitted to it; peak memory of a step."""
    measured = [_at_size(size, repeats, device) for size in sizes]
    numbers = {
        f"{name} at {size} + {size}, {unit}": row[name] * scale
        for size, row in zip(sizes, measured, strict=True)
        for name, unit, scale in (
            ("step", "ms", 1000),
            ("joint", "s", 1),
            ("search", "s", 1),
            ("memory", "MB", 1),
        )
    }
    for name, title in (
        ("step", "step"),
        ("joint", "joint module"),
        ("search", "exact candidate search"),
    ):
        numbers[f"exponent of the {title}"] = _exponent(sizes, [row[name] for row in measured])
    return numbers


def _at_size(size: int, repeats: int, device: torch.device) -> dict[str, float]:
    logger.info("measuring a pair of %s + %s entities", f"{size:,}", f"{size:,}")
    pair = synthetic_pair(num_entities=size)
    forget_peak_memory(device)
    ours, _ = _steps(pair, device)
    for _ in range(WARM_UP[device.type]):
        ours()
    # the least of several: a busy machine only adds, and not alike at every size
    step = min(_timed(ours, device) for _ in range(repeats))
    memory = peak_memory_mb(device)
    joint = partial(_joint, *_rule(pair, device))
    joint()
    joint_s = min(_timed(joint, device) for _ in range(repeats))
    search = partial(_search, pair, device)
    search()
    search_s = _timed(search, device) * size / min(size, SEARCHED)
    return {"step": step, "joint": joint_s, "search": search_s, "memory": memory}


def _steps(
    pair: GraphPair, device: torch.device
) -> tuple[Callable[[], object], Callable[[], object]]:
    graph = join_graphs(pair)
    torch.manual_seed(0)
    model = RREA(graph).to(device)
    direct = DirectRREA(graph, model).to(device)
    objective = MarginObjective()
    links = torch.from_numpy(graph.joint_links(pair.links[: len(pair.links) // 20])).to(device)
    settings: dict[str, Any] = {"lr": 0.005, "alpha": 0.9, "eps": 1e-7}
    kind = GraphedStep if device.type == "cuda" else OptimisationStep
    ours = kind(partial(objective, model, links), RMSprop(model.parameters(), **settings))
    usual = torch.optim.RMSprop(model.parameters(), **settings)
    return ours, OptimisationStep(partial(objective, direct, links), usual)


def _rule(pair: GraphPair, device: torch.device) -> tuple[PARIS, Beliefs]:
    beliefs = _beliefs(pair)
    on_device = Beliefs(beliefs.targets.to(device), beliefs.probs.to(device))
    return PARIS(pair, device=device), on_device


def _beliefs(pair: GraphPair) -> Beliefs:
    """Distinct candidates, the right one first: as much evidence as a good model has."""
    generator = torch.Generator().manual_seed(0)
    num_source, num_target = pair.source.num_entities, pair.target.num_entities
    first = torch.randint(num_target, (num_source,), generator=generator)
    links = torch.from_numpy(pair.links.copy())
    first[links[:, 0]] = links[:, 1]
    spread = torch.arange(NUM_CANDIDATES) * (num_target // NUM_CANDIDATES)
    targets = (first.unsqueeze(1) + spread) % num_target
    probs = torch.softmax(torch.arange(NUM_CANDIDATES, 0, -1.0), 0).expand(targets.shape).clone()
    return Beliefs(targets=targets, probs=probs)


def _joint(rule: PARIS, beliefs: Beliefs) -> torch.Tensor:
    rule.prepare(RuleView(beliefs, torch.zeros(0)))
    return rule(beliefs)


def _search(pair: GraphPair, device: torch.device) -> None:
    """CSLS over all entities and the best candidates, on 600-dimensional vectors."""
    sizes = min(SEARCHED, pair.source.num_entities), pair.target.num_entities
    source, target = (torch.randn(size, 600, device=device) for size in sizes)
    top_candidates(CSLS()(source, target), NUM_CANDIDATES)


def _timed(work: Callable[[], Any], device: torch.device) -> float:
    _wait(device)
    start = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _exponent(sizes: list[int], times: list[float]) -> float:
    return float(np.polyfit([math.log(s) for s in sizes], [math.log(t) for t in times], 1)[0])
