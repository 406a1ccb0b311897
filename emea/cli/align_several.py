"""``emea align A B C``: align all pairs of several graphs, and make one clustering of them."""

import argparse
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from emea import __version__
from emea.cli.arguments import check_output_folder
from emea.cli.dedupe import LIKELY, origin, places
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, graph_checksum
from emea.data.settings import Cardinality
from emea.errors import ConfigError, writing
from emea.record.checked_files import digest, read_checked_json, write_checked_json
from emea.record.outputs import locked_results
from emea.record.run_record import is_finished, is_run_folder
from emea.runtime.console import logged, say
from emea.runtime.time_left import in_words

if TYPE_CHECKING:
    from emea.clusters.clustered import Clustered
    from emea.clusters.several import PairMatches
    from emea.run.finished_run import FinishedRun

logger = logging.getLogger(__name__)

RECORD_FILE = "several.json"

PAIRS_FOLDER = "pairs"
"""Folder of the runs of all pairs of graphs."""

OF_ONE_PAIR = ("links", "test_links", "rejected", "target_precision", "show")
"""Arguments that belong to two graphs."""


Record = dict[str, list[str]]
"""Settings, pairs that the command aligned with them, and pairs of other settings."""


class Place(NamedTuple):
    """A pair of graphs.

    Args:
        first, second: The places of the graphs.
        name: The names of both.
        options: The arguments that align them.
    """

    first: int
    second: int
    name: str
    options: argparse.Namespace


class Steps(NamedTuple):
    """How two graphs are read and aligned, as ``emea align`` does."""

    read: Callable[[argparse.Namespace], GraphPair]
    align: Callable[[argparse.Namespace, GraphPair], object]


def align_several(
    options: argparse.Namespace, files: Sequence[str], steps: Steps
) -> int:
    """Align all pairs of graphs, write one clustering and return the exit status."""
    from emea.clusters.clustered import named_once
    from emea.clusters.writing import FILES
    from emea.data.sources.own_files import file_stem

    _check(options, files)
    names = named_once([file_stem(file) for file in files])
    folder: Path = options.out
    pairs = [
        _place(options, folder, names, files, (first, second))
        for first, second in combinations(range(len(files)), 2)
    ]
    for one in pairs:
        check_output_folder(one.options.out)
    with locked_results(folder, RECORD_FILE, {*FILES, RECORD_FILE}):
        record = _record(folder, options.settings)
        graphs, matches, is_single = _aligned_pairs(steps, pairs, names, record)
        _write(options, graphs, matches, is_single, record)
    return 0


def _check(options: argparse.Namespace, files: Sequence[str]) -> None:
    """Raise an error if an argument belongs to two graphs, or a graph occurs twice."""
    given = [name for name in OF_ONE_PAIR if vars(options).get(name)]
    if given:
        argument = "--" + given[0].replace("_", "-")
        raise ConfigError(
            f"{argument} is for two graphs. Align such a pair by itself first: emea align A B "
            f"{argument} ... --out {options.out / PAIRS_FOLDER / 'A-B'}. This command does "
            "not align finished pairs again."
        )
    if len({Path(file).expanduser().resolve() for file in files}) < len(files):
        raise ConfigError(
            "A file is named twice. Use emea dedupe to find duplicates inside a graph."
        )


def _place(
    options: argparse.Namespace,
    folder: Path,
    names: Sequence[str],
    files: Sequence[str],
    both: tuple[int, int],
) -> Place:
    """Return a pair of graphs with the arguments that align it."""
    first, second = both
    name = f"{names[first]}-{names[second]}"
    given = {**vars(options), "source": files[first], "target": files[second]}
    own = argparse.Namespace(**{**given, "out": folder / PAIRS_FOLDER / name})
    return Place(first, second, name, own)


def _record(folder: Path, settings: Sequence[str]) -> Record:
    """Return what the folder was made with; runs of other settings do not count as finished."""
    path = folder / RECORD_FILE
    found = read_checked_json(path) if path.exists() else {}
    is_same = found.get("settings") == list(settings)
    own = found.get("pairs", []) if is_same else []
    outdated = [] if is_same else found.get("pairs", [])
    return {"settings": list(settings), "pairs": list(own), "outdated": list(outdated)}


def _aligned_pairs(
    steps: Steps, pairs: Sequence[Place], names: Sequence[str], record: Record
) -> tuple[dict[str, KnowledgeGraph], list["PairMatches"], bool]:
    """Align the pairs that are not finished, and return the graphs and what all runs say."""
    from emea.run.finished_run import load_run

    graphs: dict[str, KnowledgeGraph] = {}
    matches = []
    is_single = True
    seconds: list[float] = []
    for number, one in enumerate(pairs, 1):
        with logged():
            pair = steps.read(one.options)
        out = one.options.out
        if one.name not in record["outdated"] and _is_finished(out, pair):
            say(f"Pair {number} of {len(pairs)}, {one.name}: finished before.")
        else:
            left = ""
            if seconds:
                rest = (len(pairs) - number + 1) * sum(seconds) / len(seconds)
                left = f", about {in_words(rest)} left"
            say(f"Pair {number} of {len(pairs)}, {one.name}{left}.")
            start = time.monotonic()
            steps.align(one.options, pair)
            seconds.append(time.monotonic() - start)
            record["pairs"].append(one.name)
        record["outdated"] = [name for name in record["outdated"] if name != one.name]
        # out is OUT/pairs/NAME
        write_checked_json(out.parent.parent / RECORD_FILE, record)
        run = load_run(out)
        for place, graph in ((one.first, pair.source), (one.second, pair.target)):
            graphs.setdefault(names[place], graph)
        is_single &= run.pair.cardinality == Cardinality.ONE_TO_ONE
        both = graphs[names[one.first]], graphs[names[one.second]]
        matches.append(_matches(one, run, both))
    return {name: graphs[name] for name in names}, matches, is_single


def _is_finished(folder: Path, pair: GraphPair) -> bool:
    """Return whether a folder has a finished run on these graphs."""
    from emea.record.pair_file import pair_of_run
    from emea.record.run_folder import read_config

    if not is_run_folder(folder) or not is_finished(folder):
        return False
    stored = pair_of_run(folder, read_config(folder))
    return all(
        _is_same(one, other)
        for one, other in ((stored.source, pair.source), (stored.target, pair.target))
    )


def _is_same(one: KnowledgeGraph, other: KnowledgeGraph) -> bool:
    """Return whether two graphs are the same, with their literals if both have them."""
    if one.attributes is None or other.attributes is None:
        one, other = (replace(graph, attributes=None) for graph in (one, other))
    one, other = (replace(graph, vectors=()) for graph in (one, other))
    have_names = list(one.all_entity_names) == list(other.all_entity_names)
    return have_names and graph_checksum(one) == graph_checksum(other)


def _matches(
    place: Place, run: "FinishedRun", both: tuple[KnowledgeGraph, KnowledgeGraph]
) -> "PairMatches":
    """Return the candidates of a run with their probabilities, by the ids of the graphs."""
    from emea.clusters.several import LEAST_LISTED, PairMatches

    beliefs = run.beliefs
    targets = beliefs.targets.cpu().numpy()
    probs = beliefs.probs.cpu().numpy()
    sources, slots = np.nonzero(probs >= LEAST_LISTED)
    found = np.stack([sources, targets[sources, slots]], axis=1)
    columns = []
    for graph, stored, column in zip(
        both, (run.pair.source, run.pair.target), found.T, strict=True
    ):
        ids = {name: entity for entity, name in enumerate(graph.all_entity_names)}
        own = np.array([ids[name] for name in stored.all_entity_names])
        columns.append(own[column])
    pairs = np.stack(columns, axis=1)
    return PairMatches(place.first, place.second, pairs, probs[sources, slots])


def _write(
    options: argparse.Namespace,
    graphs: dict[str, KnowledgeGraph],
    matches: Sequence["PairMatches"],
    is_single: bool,
    record: Record,
) -> None:
    """Cluster the graphs, write all files and print how many clusters there are."""
    from emea.clusters.clustered import Clustered
    from emea.clusters.several import cluster_several
    from emea.clusters.writing import write_clusters

    threshold = LIKELY if options.threshold is None else options.threshold
    sizes = [graph.num_entities for graph in graphs.values()]
    found = cluster_several(sizes, matches, is_single, threshold)
    name = "-".join(graphs)
    clustered = Clustered(
        name, graphs, found.pairs, found.probs, found.clusters, threshold
    )
    checksum = digest({one: graph_checksum(graph) for one, graph in graphs.items()})
    folder: Path = options.out
    with writing(folder):
        write_clusters(folder, clustered, origin(name, checksum, threshold))
        content = {
            "emea_version": __version__,
            "graphs": list(graphs),
            "checksum": checksum,
            "threshold": threshold,
            "confirmed_triangles": found.confirmed,
            "num_clusters": len(clustered.rows),
            "num_by_graphs": _by_graphs(clustered),
        }
        write_checked_json(folder / RECORD_FILE, record | content)
    say(_summary(clustered, folder))


def _by_graphs(found: "Clustered") -> dict[str, int]:
    """Return how many clusters have entities of how many graphs."""
    sizes = Counter(len({found.place(one) for one in row}) for row in found.rows)
    return {str(size): sizes[size] for size in sorted(sizes, reverse=True)}


def _summary(found: "Clustered", folder: Path) -> str:
    """Say how many clusters there are, and where the results are."""
    counts = ", ".join(
        f"{number:,} with entities of {size} graphs"
        for size, number in _by_graphs(found).items()
    )
    clusters = "cluster" if len(found.rows) == 1 else "clusters"
    first = f"Found {len(found.rows):,} {clusters} of {len(found.graphs)} graphs"
    return "\n".join(
        [f"{first}: {counts}." if counts else f"{first}.", *places(folder)]
    )
