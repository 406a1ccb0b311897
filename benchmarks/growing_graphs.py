"""Compares updates of a finished run with new runs after both graphs have grown.

    python -m benchmarks growing-graphs --data contea_fr_en --order file --shares 0.01 0.1

An earlier version of both graphs lacks a share of the triples, and the entities that occur in no
other triple. A run aligns it. Then ``emea update`` continues this run on the complete graphs, and a
new run aligns them from the beginning. Both have the same labels and the same test links, including
those of new entities. The lacking triples are drawn at random, or are the last ones of the file,
which are the latest ones of ContEA.

Each run has a folder that ``python -m experiments record add`` accepts. Processes with the same
--queue share the pairs, splits and shares.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.benchmark_runs import claimed, finished_runs, marks, output_folder
from benchmarks.command import bench_parser
from emea.cli.arguments import number_in
from emea.config.composition import composed
from emea.config.run_config import RunConfig
from emea.data.arrays import NO_MATCH, IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.split import Split
from emea.record.pair_file import load_pair
from emea.run.building import draw_split
from emea.run.finished_run import FinishedRun
from emea.run.job import run_job
from emea.setting import SHARE_BELOW_ONE
from emea.update.planning import LOCAL, Plan, plan_update
from emea.update.updating import Update, update_config

USUAL = ("model=lightea", "em=dual", "tracking=none")
ORDERS = ("random", "file")
NONE: IntArray = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Versions:
    """Two versions of a pair with the same labels.

    Args:
        earlier: The earlier version; its test links are those of entities that it has.
        later: The complete pair; all test links are its test links.
        graphs: The complete graphs before they got the ids of ``later``.
    """

    earlier: GraphPair
    later: GraphPair
    graphs: tuple[KnowledgeGraph, KnowledgeGraph]

    @classmethod
    def of(
        cls, pair: GraphPair, split: Split, share: float, order: str, seed: int
    ) -> "Versions":
        """Leave out a share of the triples, and the labels of entities that are left out."""
        graphs = _named(pair.source), _named(pair.target)
        (source, old), (target, old_target) = (
            earlier_version(graph, share, order, seed) for graph in graphs
        )
        known, parts = split.supervision, []
        for links in (known.train, known.validation, split.test):
            moved = np.stack([old[links[:, 0]], old_target[links[:, 1]]], axis=1)
            is_known = (moved != NO_MATCH).all(1)
            parts.append((moved[is_known], links[is_known]))
        (train, labels), (validation, others), (test, _) = parts
        before = OfficialSplit(train, validation, test)
        after = OfficialSplit(labels, others, split.test)
        return cls(
            _pair(pair.name, source, target, before),
            _pair(pair.name, *graphs, after),
            graphs,
        )


def _named(graph: KnowledgeGraph) -> KnowledgeGraph:
    """Return the graph with the names by which its versions are compared."""
    relations = [
        graph.relation_name(relation) for relation in range(graph.num_relations)
    ]
    return replace(graph, entity_names=graph.all_entity_names, relation_names=relations)


def _pair(
    name: str, source: KnowledgeGraph, target: KnowledgeGraph, parts: OfficialSplit
) -> GraphPair:
    links = np.concatenate([parts.train, parts.validation, parts.test])
    return GraphPair(name, source, target, links, parts).shuffled()


def earlier_version(
    graph: KnowledgeGraph, share: float, order: str, seed: int
) -> tuple[KnowledgeGraph, IntArray]:
    """Leave out a share of the triples, and the entities that occur in no other triple.

    Args:
        graph: The graph, whose entities have names.
        share: Share of the triples that are left out.
        order: ``random`` draws them, ``file`` leaves out the last ones.
        seed: Seed of the draw.

    Returns:
        The earlier version, and the id in it of each entity, or ``NO_MATCH``.
    """
    rows = np.arange(graph.num_triples)
    if order == "random":
        rows = np.random.default_rng([seed, 2]).permutation(rows)
    kept = graph.triples[np.sort(rows[: len(rows) - round(share * len(rows))])]
    entities = np.unique(kept[:, [0, 2]])
    ids = np.full(graph.num_entities, NO_MATCH, dtype=np.int64)
    ids[entities] = np.arange(len(entities))
    names = graph.all_entity_names
    triples = np.stack([ids[kept[:, 0]], kept[:, 1], ids[kept[:, 2]]], axis=1)
    remaining = [names[entity] for entity in entities.tolist()]
    return replace(
        graph, triples=triples, num_entities=len(entities), entity_names=remaining
    ), ids


def main(arguments: Sequence[str]) -> None:
    """Run all chains that no other process has claimed, then print the table of all runs."""
    options = _parser().parse_intermixed_args(arguments)
    chains = {
        f"{data}-{options.ratio}-s{seed}-grown-{share:g}": (data, seed, share)
        for data, seed, share in product(
            options.data, options.split_seeds, options.shares
        )
    }
    with output_folder(options.out) as out:
        for name in claimed(chains, options.queue):
            data, seed, share = chains[name]
            settings = [
                f"data={data}",
                f"ratio='{options.ratio}'",
                f"split_seed={seed}",
            ]
            chain = Chain(
                [*settings, *USUAL, *options.settings], out / name, share, options.order
            )
            chain.run(options.complete)
        print(table(out))


@dataclass(frozen=True)
class Chain:
    """Aligns an earlier version, updates this run, and aligns the complete graphs.

    Args:
        settings: Settings of the first and of the new run.
        folder: Folders of the runs get this path, followed by the part.
        share: Share of the triples that are new.
        order: Which triples are new, see :func:`earlier_version`.
    """

    settings: Sequence[str]
    folder: Path
    share: float
    order: str

    def run(self, complete: bool = False) -> None:
        """Run all parts.

        Args:
            complete: Recompute all entities in the update.
        """
        config = composed(list(self.settings))
        pair = load_pair(config)
        found = Versions.of(
            pair,
            draw_split(RunConfig.of(config), pair),
            self.share,
            self.order,
            config.split_seed,
        )
        config.split = composed([*self.settings, "split=known"]).split
        base = self._run_part("base", config, found.earlier)
        began = time.process_time()
        # the later pair has the same ids and labels, and the test links of new entities in addition
        update = replace(Update.of(base, *found.graphs, NONE, NONE), pair=found.later)
        plan = plan_update(update, complete)
        spent = time.process_time() - began
        later = update_config(base, is_local=plan.kind == LOCAL)
        self._run_part("update", later, found.later, plan, spent)
        self._run_part("fresh", config, found.later)

    def _run_part(
        self,
        part: str,
        config: Any,
        pair: GraphPair,
        plan: Plan | None = None,
        cpu_seconds: float = 0.0,
    ) -> FinishedRun:
        """Run one part and print its result.

        Args:
            part: ``base``, ``update`` or ``fresh``.
            config: Its settings.
            pair: Its graphs.
            plan: What an update recomputes.
            cpu_seconds: CPU time that was spent on the part before.
        """
        mark = marks(
            pair.name, f"growth {part} {100 * self.share:g}%", float(config.ratio.value)
        )
        config = config.copy()
        config.data = mark if plan is None else {**config.data, **mark}
        place = self.folder.with_name(f"{self.folder.name}-{part}")
        start = None if plan is None else plan.start
        began = time.process_time()
        run = run_job(config, place, pair=pair, start_from=start)
        # CPU time does not depend on other processes
        cpu_seconds += time.process_time() - began
        line = {"run": place.name, "hit@1": round(run.metrics["final"]["hit@1"], 4)}
        line |= {
            "links": run.metrics["num_links"],
            "seconds": run.metrics["seconds"]["total"],
        }
        line["cpu_seconds"] = cpu_seconds
        if plan is not None:
            line["recomputed"] = plan.summary(run.metrics.get("recomputed", {}))
        print(json.dumps(line), flush=True)
        return run


def table(out: Path) -> str:
    """Return Hit@1, seconds and the share of recomputed source entities of all runs."""
    titles = (
        f"{'data':14} {'run':18} {'split':>5} {'test':>7} {'Hit@1':>7} {'seconds':>8}"
    )
    rows = [f"{titles} {'recomputed':>10}"]
    for mark, metrics in finished_runs(out):
        if mark.startswith("growth "):
            hit, seconds = metrics["final"]["hit@1"], metrics["seconds"]["total"]
            number = metrics["num_links"]["test"]
            share = metrics.get("recomputed", {}).get("share", 1.0)
            rows.append(
                f"{metrics['data']:14} {mark.removeprefix('growth '):18} {metrics['split_seed']:5} "
                f"{number:7} {hit:7.4f} {seconds:8.1f} {share:10.1%}"
            )
    return "\n".join(rows)


def _parser() -> argparse.ArgumentParser:
    parser = bench_parser("growing-graphs", __doc__, has_file=False)
    parser.add_argument(
        "settings", nargs="*", metavar="key=value", help="settings of emea run"
    )
    parser.add_argument(
        "--data", nargs="+", default=["synthetic"], help="options of data"
    )
    parser.add_argument(
        "--ratio", default="0.1", help="share of labels (default: %(default)s)"
    )
    parser.add_argument("--split-seeds", nargs="+", type=int, default=[0], metavar="N")
    parser.add_argument(
        "--shares",
        nargs="+",
        type=number_in(SHARE_BELOW_ONE, float),
        default=[0.01, 0.1],
        metavar="X",
    )
    parser.add_argument(
        "--complete", action="store_true", help="updates recompute all entities"
    )
    parser.add_argument(
        "--order", choices=ORDERS, default="random", help="which triples are new"
    )
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
