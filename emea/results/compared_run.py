"""Runs to compare."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.errors import DataError, UserError
from emea.record.run_folder import (
    RANKS_FILE,
    links_checksum,
    read_config,
    read_metrics,
    read_ranks,
)
from emea.record.run_record import check_finished, read_run_file

STAGES = ("initial", "final")


@dataclass(frozen=True, eq=False)
class NamedLinks:
    """The names of the test links, in the order of their ranks."""

    source: list[str]
    target: list[str]


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """One finished run.

    Args:
        label: How the comparison names the run.
        settings: The configuration with dotted keys.
        tags: Commit, machine, checksum of the data and further tags.
        metrics: The content of ``metrics.json``; the history is not needed.
        ranks: The ranks of the test links among the test targets by stage, if they were kept.
        links_checksum: The checksum of the test links; ``None`` if it is unknown.
        read_links: Reads the names of the test links, which may need the data set.
    """

    label: str
    settings: Mapping[str, Any]
    tags: Mapping[str, str]
    metrics: Mapping[str, Any]
    ranks: Mapping[str, FloatArray]
    links_checksum: str | None
    read_links: Callable[[], NamedLinks]


def load_compared_run(folder: Path) -> ComparedRun:
    """Return the finished run in a folder.

    Raises:
        UserError: If there is no run, or it is unfinished or damaged.
    """
    check_finished(folder)
    header = read_run_file(folder)
    ranks: dict[str, FloatArray] = {}
    checksum = None
    if (folder / RANKS_FILE).exists():
        arrays, checksum = read_ranks(folder)
        kept = {stage: arrays.get(f"{stage}_in_pool") for stage in STAGES}
        ranks = {
            stage: found.astype(np.float64) for stage, found in kept.items() if found is not None
        }
    return ComparedRun(
        label=folder.resolve().name,
        settings=header["params"],
        tags=header["tags"],
        metrics=read_metrics(folder),
        ranks=ranks,
        links_checksum=checksum,
        read_links=partial(_links_of_folder, folder, checksum),
    )


def _links_of_folder(folder: Path, checksum: str | None) -> NamedLinks:
    """Return the names of a run's test links, read from its data.

    Raises:
        UserError: If the data is missing, or has other links.
    """
    from emea.config.instantiate import factory
    from emea.record.pair_file import pair_of_run

    config = read_config(folder)
    config.trust = []
    if "root" in config.data and not Path(config.data.root).exists():
        config.data.root = os.environ.get("EMEA_DATA", "data")
    pair = pair_of_run(folder, config)
    if pair.checksum() != read_run_file(folder)["tags"].get("data_checksum"):
        raise DataError(f"the data of {pair.name} changed since the run")
    links = read_ranks(folder)[0].get("links")
    if links is None:  # a run restored from an archive has only their checksum
        links = factory(config.split)(pair).test
    if checksum is None or links_checksum(links) != checksum:
        raise DataError(f"the test links of {pair.name} changed since the run")
    return _named(pair, links)


def _named(pair: GraphPair, links: IntArray) -> NamedLinks:
    def names(graph: KnowledgeGraph, ids: IntArray) -> list[str]:
        known = graph.entity_names
        return [str(number) if known is None else known[number] for number in ids.tolist()]

    return NamedLinks(names(pair.source, links[:, 0]), names(pair.target, links[:, 1]))


def names_or_reason(run: ComparedRun) -> tuple[NamedLinks | None, str]:
    """Return the names of a run's test links, or why they cannot be read."""
    try:
        return run.read_links(), ""
    except (UserError, OSError) as error:
        return None, str(error)
