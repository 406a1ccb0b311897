"""Reads and checks the beliefs and labels of a finished run."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.errors import DataError
from emea.matching.beliefs import Beliefs
from emea.record.checked_files import read_checked_arrays
from emea.record.run_folder import RANKS_FILE

ROUNDING = 1e-3
"""The amount by which a stored probability may exceed 1."""


@dataclass(frozen=True, eq=False)
class StoredBeliefs:
    """Holds the content of a file that ``run_folder.write_beliefs`` wrote.

    Args:
        neural: Beliefs of the neural model, if the run had one.
        joint: Beliefs of the joint distribution, or the matching of a baseline.
        labels: ``[num_labels, 2]`` links with probability 1 in the run; ``None`` for old runs,
            which did not store them.
    """

    neural: Beliefs | None
    joint: Beliefs | None
    labels: Tensor | None


def read_beliefs(path: Path, pair: GraphPair) -> StoredBeliefs:
    """Read the beliefs of a run.

    Args:
        path: The file.
        pair: The graphs of the run.

    Raises:
        DataError: If the file cannot be read, or belongs to other graphs.
    """
    arrays = _read_tensors(path)
    found = {name: _beliefs(arrays, name) for name in ("neural", "joint")}
    beliefs = [one for one in found.values() if one is not None]
    labels = arrays.get("labels")
    if not beliefs:
        raise DataError(f"{path} is damaged: it contains no beliefs")
    if not all(_fit(one, pair) for one in beliefs):
        raise DataError(f"{path} is damaged: its beliefs are not about {pair.name}")
    if labels is not None and not _are_links(labels, pair):
        raise DataError(f"{path} is damaged: its labels are not links of {pair.name}")
    return StoredBeliefs(found["neural"], found["joint"], labels)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    arrays = read_checked_arrays(path)
    try:
        return {name: torch.from_numpy(array) for name, array in arrays.items()}
    except (TypeError, ValueError) as error:  # the array contains text or has another byte order
        raise DataError(f"{path} cannot be read: {error}") from error


def _beliefs(arrays: dict[str, Tensor], name: str) -> Beliefs | None:
    probs = arrays.get(f"{name}_probs")
    targets = arrays.get(f"{name}_targets", arrays.get("targets"))
    return None if probs is None or targets is None else Beliefs(targets, probs)


def _fit(beliefs: Beliefs, pair: GraphPair) -> bool:
    """Return whether every source entity has valid candidates and probabilities."""
    targets, probs = beliefs.targets, beliefs.probs
    if targets.shape != probs.shape or targets.ndim != 2 or not targets.shape[1]:
        return False
    is_prob = (probs >= 0) & (probs <= 1 + ROUNDING)
    return (
        len(targets) == pair.source.num_entities
        and probs.is_floating_point()
        and bool(is_prob.all())
        and _are_ids(targets, pair.target.num_entities)
    )


def _are_links(labels: Tensor, pair: GraphPair) -> bool:
    return (
        labels.ndim == 2
        and labels.shape[1] == 2
        and _are_ids(labels[:, 0], pair.source.num_entities)
        and _are_ids(labels[:, 1], pair.target.num_entities)
    )


def _are_ids(ids: Tensor, size: int) -> bool:
    return ids.dtype == torch.int64 and bool(((ids >= 0) & (ids < size)).all())


def check_parts(folder: Path, split: Split, labels: IntArray | None) -> None:
    """Raise an error if the train or test links changed since the run.

    The checksum of the data covers all links, but not how they are split.

    Args:
        folder: The run's folder, which has the test links in its file of ranks.
        split: The current split.
        labels: Links with probability 1 in the run; ``None`` if it did not store them.

    Raises:
        DataError: If the links changed, or the file of ranks cannot be read.
    """
    test = _test_links(folder)
    same = test is None or _as_set(test) == _as_set(split.test)
    if labels is not None:
        # with protocol=released, AvoidConf also gives some test links probability 1
        trained = _as_set(labels) - _as_set(split.test)
        same = same and trained == _as_set(split.supervision.train)
    if not same:
        raise DataError(
            f"Train or test links changed since the run in {folder}. Restore the link files or "
            "run it again."
        )


def _test_links(folder: Path) -> IntArray | None:
    """Return the test links that the run ranked; ``None`` if it has no file of ranks."""
    path = folder / RANKS_FILE
    if not path.exists():
        return None
    links = read_checked_arrays(path).get("links")
    if links is None or links.dtype != np.int64 or links.ndim != 2 or links.shape[1] != 2:
        raise DataError(f"{path} is damaged: it contains no links")
    return links


def _as_set(links: IntArray) -> set[tuple[int, ...]]:
    return set(map(tuple, links.tolist()))
