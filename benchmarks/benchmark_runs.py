"""Runs of benchmarks that are recorded: their marks, their folders and how processes share them."""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph
from emea.record.run_folder import METRICS_FILE, read_metrics
from emea.record.run_record import read_run_file

MARK, RATIO = "benchmark", "benchmark_ratio"
"""Settings of ``data`` that say which part of a benchmark a run is. Reports select runs by them."""


def marks(name: str, mark: str, ratio: float) -> dict[str, Any]:
    """Return the settings of ``data`` of a run on graphs in memory.

    Args:
        name: Name of the pair.
        mark: The part of the benchmark that the run is.
        ratio: Share of the links that are labels in the first run.
    """
    return {"name": name, MARK: mark, RATIO: ratio}


@contextlib.contextmanager
def output_folder(out: Path | None) -> Iterator[Path]:
    """Yield the folder of the runs; without one, a folder that is removed at the end."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="emea-") as scratch:
        yield Path(scratch)


def claimed(chains: Iterable[str], queue: Path | None) -> Iterator[str]:
    """Yield the chains of runs that no other process with the same queue has claimed."""
    if queue is not None:
        queue.mkdir(parents=True, exist_ok=True)
    for chain in chains:
        if queue is None:
            yield chain
            continue
        with contextlib.suppress(FileExistsError):
            (queue / chain).touch(exist_ok=False)
            yield chain


def finished_runs(out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield mark and metrics of every finished run below a folder, ordered by the folder's name."""
    for file in sorted(out.glob(f"*/{METRICS_FILE}")):
        params = read_run_file(file.parent)["params"]
        yield str(params.get(f"data.{MARK}")), read_metrics(file.parent)


def ids_of(graph: KnowledgeGraph, names: Iterable[str]) -> IntArray:
    """Return the ids of entities that are given by their names."""
    ids = {name: entity for entity, name in enumerate(graph.all_entity_names)}
    return np.array([ids[name] for name in names], dtype=np.int64)
