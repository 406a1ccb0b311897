"""Compares suggested labels with random ones; the gold links take the place of a person.

    emea bench suggested-labels --data ja --split-seeds 0 1 --counts 50 100 200

A run starts from few labels. Each arm then asks for more labels in several rounds and continues the
run after each round, as ``emea update`` does. ``suggested`` asks for the entities of
``emea suggest``; a question about an entity without a counterpart counts, but brings no link.
``random`` draws links, so each of its questions brings one. ``control`` continues without new
links. Hit@1 is measured on the test links that no arm was given. Test links are used as the answers
of the person and for the evaluation only.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from emea.config.instantiate import load_pair
from emea.config.overrides import composed
from emea.config.schema import register_schema
from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.explain.explainer import Explainer
from emea.record.atomic import write_lines
from emea.run.finished_run import FinishedRun
from emea.run.job import run_job
from emea.run.parts import draw_split
from emea.run.result import RunResult
from emea.suggest.suggestion import suggest
from emea.update.updating import Update, update_config

USUAL = ("model=lightea", "em=dual", "em.iterations=1", "trainer=cpu", "tracking=none")
ARMS = ("suggested", "random", "control")

Names = dict[str, str]
"""Target by source entity, both by name."""


@dataclass(frozen=True)
class Measured:
    """The result of one arm after some questions.

    Args:
        arm: The arm.
        num_asked: Number of questions so far.
        labels: Source entities of the links that the arm was given.
        ranks: Rank of each test link by its source entity.
        seconds: Duration of the run.
    """

    arm: str
    num_asked: int
    labels: frozenset[str]
    ranks: dict[str, float]
    seconds: float


def main(arguments: Sequence[str]) -> None:
    """Measure all splits, print the numbers and write them to a file on request."""
    options = _parser().parse_intermixed_args(arguments)
    register_schema()
    lines = []
    for seed in options.split_seeds:
        settings = [f"data={options.data}", f"ratio='{options.ratio}'", f"split_seed={seed}"]
        found = measure([*settings, *USUAL, *options.settings], options.arms, options.counts, seed)
        for line in summary(found):
            line = {"data": options.data, "split_seed": seed, **line}
            print(json.dumps(line), flush=True)
            lines.append(json.dumps(line))
    if options.json is not None:
        write_lines(options.json, lines)


def measure(
    settings: Sequence[str], arms: Sequence[str], counts: Sequence[int], seed: int
) -> list[Measured]:
    """Run all arms on one split."""
    config = composed(list(settings))
    pair = load_pair(config)
    split = draw_split(config, pair)
    known = split.supervision
    pair = replace(pair, official=OfficialSplit(known.train, known.validation, split.test))
    config.split = composed([*settings, "split=known"]).split
    with tempfile.TemporaryDirectory(prefix="emea-") as scratch:
        start = time.perf_counter()
        result = run_job(config, Path(scratch) / "start", pair=pair)
        found = [_measured("start", 0, frozenset(), result, start)]
        for arm in arms:
            person = _Person(arm, pair, split.test, seed)
            run, given, num_asked = FinishedRun.of(result), frozenset[str](), 0
            for count in counts:
                start, links = time.perf_counter(), person.answers(run, count - num_asked)
                num_asked, given = count, given | links.keys()
                update = Update.of(run, run.pair.source, run.pair.target, _ids(run, links), NONE)
                folder = Path(scratch) / f"{arm}-{count}"
                later = run_job(
                    update_config(run),
                    folder,
                    pair=update.pair,
                    start_from=update.start(),
                )
                run = FinishedRun.of(later)
                found.append(_measured(arm, count, given, later, start))
    return found


def summary(found: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return Hit@1 of each arm on the test links that no arm was given."""
    given = frozenset[str]().union(*(one.labels for one in found))
    common = found[0].ranks.keys() - given
    return [
        {
            "arm": one.arm,
            "num_asked": one.num_asked,
            "num_links": len(one.labels),
            "hit@1": round(float(np.mean([one.ranks[name] <= 1 for name in common])), 4),
            "num_test": len(common),
            "seconds": round(one.seconds),
        }
        for one in found
    ]


NONE: IntArray = np.zeros((0, 2), dtype=np.int64)


class _Person:
    """Answers the questions of an arm from the test links."""

    def __init__(self, arm: str, pair: GraphPair, test: IntArray, seed: int) -> None:
        names = pair.source.all_entity_names, pair.target.all_entity_names
        self.arm = arm
        self.gold: Names = {names[0][one]: names[1][other] for one, other in test.tolist()}
        order = np.random.default_rng(seed).permutation(len(test))
        self.drawn = [names[0][one] for one in test[order, 0].tolist()]
        self.asked: set[str] = set()

    def answers(self, run: FinishedRun, num: int) -> Names:
        """Return the links that the next questions bring."""
        if self.arm == "control":
            return {}
        if self.arm == "random":
            names = self.drawn[len(self.asked) : len(self.asked) + num]
        else:
            found = suggest(Explainer(run), num + len(self.asked))
            listed = [run.pair.source.entity_name(one.source) for one in found]
            names = [name for name in listed if name not in self.asked][:num]
        self.asked |= set(names)
        return {name: self.gold[name] for name in names if name in self.gold}


def _ids(run: FinishedRun, links: Names) -> IntArray:
    source, target = (
        {name: entity for entity, name in enumerate(graph.all_entity_names)}
        for graph in (run.pair.source, run.pair.target)
    )
    ids = [(source[one], target[other]) for one, other in links.items()]
    return np.array(ids, dtype=np.int64).reshape(-1, 2)


def _measured(
    arm: str, num_asked: int, given: frozenset[str], result: RunResult, start: float
) -> Measured:
    names = result.pair.source.all_entity_names
    ranks = result.outcome.ranks.final.in_pool.tolist()
    by_name = {
        names[one]: rank for one, rank in zip(result.split.test[:, 0].tolist(), ranks, strict=True)
    }
    return Measured(arm, num_asked, given, by_name, time.perf_counter() - start)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="emea bench suggested-labels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of emea run")
    parser.add_argument("--data", default="ja", help="option of data (default: %(default)s)")
    parser.add_argument("--ratio", default="0.01", help="share of labels (default: %(default)s)")
    parser.add_argument("--split-seeds", nargs="+", type=int, default=[0, 1], metavar="N")
    parser.add_argument("--counts", nargs="+", type=int, default=[50, 100, 200], metavar="N")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["suggested", "random"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the numbers")
    return parser
