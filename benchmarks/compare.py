"""Our step and our joint module against the direct forms, and their growth with size.

    python -m benchmarks.compare [--pair OVERRIDES...] [--sizes 5000 10000 20000] [--json FILE]

All ratios are measured side by side in one run, so a busy machine moves both.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.direct_rrea import DirectRREA
from benchmarks.loop_paris import loop_values, neighbours_of
from emea.data.graph_pair import GraphPair
from emea.data.synthetic import synthetic_pair
from emea.encoders.joint_graph import join_graphs
from emea.encoders.margin_objective import MarginObjective
from emea.encoders.rrea import RREA
from emea.matching.beliefs import Beliefs
from emea.pipeline.machine import keep_freed_memory
from emea.pipeline.overrides import composed
from emea.pipeline.parts import load_pair
from emea.pipeline.schema import register_schema
from emea.rules.paris import PARIS
from emea.rules.rule import RuleView
from emea.tracking.atomic import write_json
from emea.tracking.provenance import provenance

NUM_CANDIDATES = 10
NUM_LOOPED = 200
"""Entities the loop works on; its time is scaled to all of them."""


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pair", nargs="*", default=["data.num_entities=20000"])
    parser.add_argument("--sizes", nargs="*", type=int, default=[5000, 10000, 20000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    register_schema()
    keep_freed_memory()
    pair = load_pair(composed(options.pair))
    numbers: dict[str, Any] = {
        "pair": f"{pair.name}, {pair.source.num_entities} + {pair.target.num_entities} entities",
        **step_ratio(pair, options.repeats),
        **joint_ratio(pair, options.repeats),
        **growth(options.sizes, options.repeats),
    }
    for name, value in numbers.items():
        print(f"{name:<34} {value:,.4g}" if isinstance(value, float) else f"{name:<34} {value}")
    if options.json:
        write_json(options.json, {**numbers, **provenance()})


def step_ratio(pair: GraphPair, repeats: int) -> dict[str, float]:
    """Forward and backward of both forms, in turn."""
    ours, direct = _steps(pair)
    times = [(_timed(ours), _timed(direct)) for _ in range(repeats)]
    ours_s, direct_s = (statistics.median(column) for column in zip(*times, strict=True))
    return {
        "step, ms": 1000 * ours_s,
        "edge-materialising step, ms": 1000 * direct_s,
        "step ratio": direct_s / ours_s,
    }


def joint_ratio(pair: GraphPair, repeats: int) -> dict[str, float]:
    """The PARIS rule for all entities against the loop over some of them."""
    beliefs = _beliefs(pair)
    rule = PARIS(pair)
    joint = statistics.median(_timed(lambda: _joint(rule, beliefs)) for _ in range(repeats))
    values = _joint(rule, beliefs)
    source, target = neighbours_of(pair.source), neighbours_of(pair.target)
    looped = np.random.default_rng(0).choice(pair.source.num_entities, NUM_LOOPED, replace=False)
    start = time.perf_counter()
    expected = loop_values(looped.tolist(), source, target, beliefs, rule)
    loop = (time.perf_counter() - start) * pair.source.num_entities / NUM_LOOPED
    difference = (values[looped, :, 0] - torch.tensor(expected)).abs().max()
    if difference > 1e-4:
        raise AssertionError(f"the loop gives other values: {difference}")
    return {"joint, s": joint, "per-candidate loop, s": loop, "joint ratio": loop / joint}


def growth(sizes: list[int], repeats: int) -> dict[str, float]:
    """Time of step and joint module at several sizes, and the exponent fitted to it."""
    steps, joints, numbers = [], [], {}
    for size in sizes:
        pair = synthetic_pair(num_entities=size)
        ours, _ = _steps(pair)
        ours()
        steps.append(statistics.median(_timed(ours) for _ in range(repeats)))
        rule, beliefs = PARIS(pair), _beliefs(pair)
        joint = partial(_joint, rule, beliefs)
        joints.append(statistics.median(_timed(joint) for _ in range(repeats)))
        numbers[f"step at {size} + {size}, ms"] = 1000 * steps[-1]
        numbers[f"joint at {size} + {size}, s"] = joints[-1]
    return numbers | {
        "exponent of the step": _exponent(sizes, steps),
        "exponent of the joint module": _exponent(sizes, joints),
    }


def _steps(pair: GraphPair) -> tuple[Callable[[], Any], Callable[[], Any]]:
    graph = join_graphs(pair)
    torch.manual_seed(0)
    model = RREA(graph)
    direct = DirectRREA(graph, model)
    objective = MarginObjective()
    links = torch.from_numpy(graph.joint_links(pair.links[: len(pair.links) // 20]))

    def step(encoder: torch.nn.Module) -> None:
        model.zero_grad(set_to_none=True)
        objective(encoder, links).backward()

    return lambda: step(model), lambda: step(direct)


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


def _timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _exponent(sizes: list[int], times: list[float]) -> float:
    return float(np.polyfit([math.log(s) for s in sizes], [math.log(t) for t in times], 1)[0])


if __name__ == "__main__":
    main()
