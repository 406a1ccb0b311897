"""Compares suggested labels with random ones; the gold links take the place of a person.

    python -m benchmarks suggested-labels --data ja fr --split-seeds 0 1 2 --out outputs/labels

For each pair and split, a run starts from few labels. Each arm then asks for more labels in rounds
and continues the run after each round, as ``emea update`` does:

- suggested: 50, 100 and 200 questions in total about the entities of ``emea suggest``. If an entity
  has no counterpart, the question counts, and the answer rejects its candidates.
- random: the same number of random links, so each question brings a link.
- more: 1.5 times as many random links.
- control: no new links.

Half of the source entities, drawn at random, are never asked about. Their test links are the test
links of all runs. So all arms are evaluated on the same links and among the same targets, and none
of these links is a label of any run. Suggestions and random links come from the other half.

Each run has a folder that ``python -m experiments record add`` accepts. Processes with the same
--queue share the pairs and splits.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.benchmark_runs import (
    claimed,
    finished_runs,
    ids_of,
    marks,
    output_folder,
)
from benchmarks.command import bench_parser
from emea.cli.arguments import AT_LEAST_ONE, number_in
from emea.config.composition import composed
from emea.config.run_config import RunConfig
from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.explain.explainer import Explainer
from emea.record.pair_file import load_pair
from emea.run.building import draw_split
from emea.run.finished_run import FinishedRun
from emea.run.job import run_job
from emea.suggest import suggest
from emea.update.updating import Update, update_config

USUAL = ("model=rrea", "em=one_to_one", "tracking=none")
ARMS = ("suggested", "random", "more", "control")
MORE = 1.5
"""Random links of the arm ``more`` for each question of the other arms."""

HELD_OUT = 0.5
"""Share of the source entities that are not asked about; their test links are evaluated."""

Names = dict[str, str]
"""Target by source entity, both by name."""


@dataclass(frozen=True, eq=False)
class Task:
    """A pair whose test links are divided into answers and links for the evaluation.

    Args:
        graphs: The graphs as they were read; every run of the benchmark gives them the same ids.
        pair: The pair of the first run. Its test links are those of the held-out entities.
        answers: The other test links.
        can_ask: Source entities that are not held out, by name.
    """

    graphs: GraphPair
    pair: GraphPair
    answers: Names
    can_ask: frozenset[str]

    @classmethod
    def of(cls, config: Any, seed: int) -> "Task":
        """Read the pair and divide the test links of the configured split."""
        read = load_pair(config)
        # names identify the entities in all runs
        graphs = replace(
            read,
            source=replace(read.source, entity_names=read.source.all_entity_names),
            target=replace(read.target, entity_names=read.target.all_entity_names),
        )
        split = draw_split(RunConfig.of(config), graphs)
        is_held_out = (
            np.random.default_rng([seed, 1]).random(graphs.source.num_entities)
            < HELD_OUT
        )
        is_tested = is_held_out[split.test[:, 0]]
        known = split.supervision
        parts = OfficialSplit(known.train, known.validation, split.test[is_tested])
        links = np.concatenate([parts.train, parts.validation, parts.test])
        source, target = graphs.source.all_entity_names, graphs.target.all_entity_names
        return cls(
            graphs,
            GraphPair(
                graphs.name, graphs.source, graphs.target, links, parts
            ).shuffled(),
            {
                source[one]: target[other]
                for one, other in split.test[~is_tested].tolist()
            },
            frozenset(source[one] for one in np.flatnonzero(~is_held_out).tolist()),
        )

    def update(
        self, run: FinishedRun, links: Names, rejected: Sequence[tuple[str, str]]
    ) -> Update:
        """Return the update of a run of this task with further links and rejected pairs."""
        source, target = self.graphs.source, self.graphs.target
        added, removed = (
            np.stack(
                [
                    ids_of(source, (one for one, _ in some)),
                    ids_of(target, (two for _, two in some)),
                ]
            ).T
            for some in (list(links.items()), rejected)
        )
        return Update.of(run, source, target, added, removed)


@dataclass(eq=False)
class Person:
    """Answers the questions of one arm from the answers of a task.

    Args:
        arm: The arm.
        task: The task.
        seed: Seed of the random links.
    """

    arm: str
    task: Task
    seed: int
    asked: set[str] = field(default_factory=set)

    def reply(self, run: FinishedRun, num: int) -> tuple[Names, list[tuple[str, str]]]:
        """Return the links and the rejected pairs that the next questions bring."""
        answers = self.task.answers
        if self.arm == "control":
            return {}, []
        if self.arm != "suggested":
            names = sorted(answers)
            order = np.random.default_rng(self.seed).permutation(len(names))
            drawn = [names[place] for place in order.tolist()]
            new = drawn[len(self.asked) : len(self.asked) + num]
            self.asked |= set(new)
            return {name: answers[name] for name in new}, []
        source, target = run.pair.source, run.pair.target
        left = self.task.can_ask - self.asked
        among: IntArray = np.array(
            [one for one, name in enumerate(source.all_entity_names) if name in left],
            np.int64,
        )
        links, rejected = {}, []
        for one in suggest(Explainer(run), num, among):
            name = source.entity_name(one.source)
            self.asked.add(name)
            if name in answers:
                links[name] = answers[name]
            else:
                rejected += [
                    (name, target.entity_name(other)) for other, _ in one.candidates
                ]
        return links, rejected


def main(arguments: Sequence[str]) -> None:
    """Run all chains that no other process has claimed, then print the table of all runs."""
    options = _parser().parse_intermixed_args(arguments)
    chains = {
        f"{data}-{options.ratio}-s{seed}": (data, seed)
        for data, seed in product(options.data, options.split_seeds)
    }
    with output_folder(options.out) as out:
        for name in claimed(chains, options.queue):
            data, seed = chains[name]
            settings = [
                f"data={data}",
                f"ratio='{options.ratio}'",
                f"split_seed={seed}",
            ]
            settings += [*USUAL, *options.settings]
            run_chain(settings, out / name, options.arms, options.counts)
        print(table(out))


def run_chain(
    settings: Sequence[str], folder: Path, arms: Sequence[str], counts: Sequence[int]
) -> None:
    """Run the first alignment and all arms on one split.

    Args:
        settings: Settings of the first run.
        folder: Folders of the runs get this path, followed by the arm and the number of questions.
        arms: The arms.
        counts: Number of questions in total after each round.
    """
    config = composed(list(settings))
    seed, ratio = config.split_seed, float(config.ratio.value)
    task = Task.of(config, seed)
    config.data = marks(task.pair.name, "labels start 0", ratio)
    config.split = composed([*settings, "split=known"]).split
    first = run_job(config, folder.with_name(f"{folder.name}-start"), pair=task.pair)
    for arm in arms:
        person, run, num_asked = Person(arm, task, seed), first, 0
        for count in counts:
            start = time.perf_counter()
            count = round(MORE * count) if arm == "more" else count
            update = task.update(run, *person.reply(run, count - num_asked))
            num_asked, later = count, update_config(run)
            later.data = {
                **later.data,
                **marks(task.pair.name, f"labels {arm} {count}", ratio),
            }
            place = folder.with_name(f"{folder.name}-{arm}-{count}")
            run = run_job(later, place, pair=update.pair, start_from=update.start())
            line = {"run": place.name, "hit@1": round(run.metrics["final"]["hit@1"], 4)}
            line |= {"links": run.metrics["num_links"]}
            line |= {"seconds": round(time.perf_counter() - start, 1)}
            print(json.dumps(line), flush=True)


def table(out: Path) -> str:
    """Return mean Hit@1 over splits by pair, arm and number of questions."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for mark, metrics in finished_runs(out):
        if mark.startswith("labels "):
            found.setdefault((metrics["data"], *mark.split()[1:]), []).append(metrics)
    rows = [
        f"{'data':12} {'arm':10} {'asked':>6} {'labels':>7} {'Hit@1':>7} {'splits':>7}"
    ]
    for (data, arm, asked), runs in sorted(
        found.items(), key=lambda item: _order(item[0])
    ):
        hit = fmean(run["final"]["hit@1"] for run in runs)
        labels = fmean(run["num_links"]["train"] for run in runs)
        rows.append(
            f"{data:12} {arm:10} {asked:>6} {labels:7.0f} {hit:7.4f} {len(runs):7}"
        )
    return "\n".join(rows)


def _order(key: tuple[str, ...]) -> tuple[str, int, int]:
    data, arm, asked = key
    return data, ("start", *ARMS).index(arm), int(asked)


def _parser() -> argparse.ArgumentParser:
    parser = bench_parser("suggested-labels", __doc__, has_file=False)
    parser.add_argument(
        "settings", nargs="*", metavar="key=value", help="settings of emea run"
    )
    parser.add_argument(
        "--data", nargs="+", default=["ja", "fr"], help="options of data"
    )
    parser.add_argument(
        "--ratio", default="0.01", help="share of labels (default: %(default)s)"
    )
    parser.add_argument(
        "--split-seeds", nargs="+", type=int, default=[0, 1, 2], metavar="N"
    )
    parser.add_argument(
        "--counts",
        nargs="+",
        type=number_in(AT_LEAST_ONE, int),
        default=[50, 100, 200],
        metavar="N",
    )
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of the run folders (default: temporary)",
    )
    parser.add_argument(
        "--queue", type=Path, metavar="DIR", help="folder that processes share"
    )
    return parser
