"""Reads and checks the beliefs and labels of a finished run."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.errors import DataError
from emea.matching.beliefs import Beliefs
from emea.record.checked_files import damaged, read_checked_arrays, reading
from emea.record.run_folder import RANKS_FILE

ROUNDING = 1e-3
"""The amount by which a stored probability may exceed 1."""


Stored = tuple[Beliefs | None, Beliefs | None, Tensor, Tensor | None]
"""The beliefs of a file: neural, joint, labels and votes, as in `FinishedRun`."""


def read_beliefs(path: Path, pair: GraphPair) -> Stored:
    """Read the beliefs of a run on a pair of graphs.

    Raises:
        DataError: If the file cannot be read, or belongs to other graphs.
    """
    arrays = read_checked_arrays(path)
    with reading(path):
        neural, joint = (_beliefs(arrays, name, pair) for name in ("neural", "joint"))
        if neural is None and joint is None:
            raise ValueError("it contains no beliefs")
        labels = arrays["labels"]
        sizes = np.array([pair.source.num_entities, pair.target.num_entities])
        if labels.shape[1:] != (2,) or not _are_ids(labels, sizes):
            raise ValueError(f"its labels are not links of {pair.name}")
        votes = arrays.get("votes")
        if votes is not None and not (
            votes.shape[1:] == (pair.source.num_entities,) and _are_ids(votes + 1, sizes[1] + 1)
        ):
            raise ValueError(f"its votes are not about {pair.name}")
        found = None if votes is None else torch.from_numpy(votes)
        return neural, joint, torch.from_numpy(labels), found


def _beliefs(arrays: Mapping[str, np.ndarray], name: str, pair: GraphPair) -> Beliefs | None:
    """Return beliefs; every source entity needs valid candidates and probabilities."""
    probs = arrays.get(f"{name}_probs")
    targets = arrays.get(f"{name}_targets", arrays.get("targets"))
    if probs is None or targets is None:
        return None
    is_valid = (
        targets.shape == probs.shape
        and targets.shape[:1] == (pair.source.num_entities,)
        and targets.shape[1:] != (0,)
        and _are_ids(targets, np.array(pair.target.num_entities))
        and probs.dtype.kind == "f"
        and bool(((probs >= 0) & (probs <= 1 + ROUNDING)).all())
    )
    if not is_valid:
        raise ValueError(f"its beliefs are not about {pair.name}")
    return Beliefs(torch.from_numpy(targets), torch.from_numpy(probs))


def _are_ids(ids: np.ndarray, sizes: IntArray | int) -> bool:
    """Return whether a matrix contains ids below the size, or below the size of their column."""
    is_matrix = ids.ndim == 2 and ids.dtype == np.int64
    return is_matrix and bool(((ids >= 0) & (ids < sizes)).all())


def check_parts(folder: Path, split: Split, labels: IntArray) -> None:
    """Raise an error if the train or test links changed since the run.

    The checksum of the data covers all links, but not how they are split.

    Args:
        folder: The run's folder, which has the test links in its file of ranks.
        split: The current split.
        labels: Links with probability 1 in the run.

    Raises:
        DataError: If the links changed, or the file of ranks cannot be read.
    """
    path, test, same = folder / RANKS_FILE, _as_set(split.test), True
    if path.exists():
        ranked = read_checked_arrays(path).get("links")
        if ranked is None or ranked.dtype != np.int64 or ranked.shape[1:] != (2,):
            raise damaged(path, "it contains no links")
        same = _as_set(ranked) == test
    # with protocol=released, AvoidConf also gives some test links probability 1
    if not same or _as_set(labels) - test != _as_set(split.supervision.train):
        raise DataError(
            f"Train or test links changed since the run in {folder}. Restore the link files or "
            "run it again."
        )


def _as_set(links: IntArray) -> set[tuple[int, ...]]:
    return set(map(tuple, links.tolist()))
