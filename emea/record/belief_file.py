"""The beliefs and labels of a finished run, read back and checked."""

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
from emea.record.run_folder import RANKS_FILE, read_arrays

ROUNDING = 1e-3
"""By how much a probability may exceed 1."""


@dataclass(frozen=True, eq=False)
class StoredBeliefs:
    """What ``run_files.write_beliefs`` wrote.

    Args:
        neural: of the neural model; ``None``: the run had none.
        joint: of the joint distribution, or a baseline's matching; ``None``: no EM.
        labels: ``[num_labels, 2]`` links that the run was certain of; ``None``: a run from before
            they were kept.
    """

    neural: Beliefs | None
    joint: Beliefs | None
    labels: Tensor | None


def read_beliefs(path: Path, pair: GraphPair) -> StoredBeliefs:
    """Read the beliefs of a run.

    Args:
        path: the file.
        pair: the graphs of the run.

    Raises:
        DataError: the file cannot be read, or what it holds is not about these graphs.
    """
    arrays = _read_tensors(path)
    found = {name: _beliefs(arrays, name) for name in ("neural", "joint")}
    beliefs = [one for one in found.values() if one is not None]
    labels = arrays.get("labels")
    if not beliefs:
        raise DataError(f"{path} is damaged: it holds no beliefs")
    if not all(_fit(one, pair) for one in beliefs):
        raise DataError(f"{path} is damaged: its beliefs are not about {pair.name}")
    if labels is not None and not _are_links(labels, pair):
        raise DataError(f"{path} is damaged: its labels are no links of {pair.name}")
    return StoredBeliefs(found["neural"], found["joint"], labels)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    arrays = read_arrays(path)
    try:
        return {name: torch.from_numpy(array) for name, array in arrays.items()}
    except (TypeError, ValueError) as error:  # text, or another order of bytes
        raise DataError(f"{path} cannot be read: {error}") from error


def _beliefs(arrays: dict[str, Tensor], name: str) -> Beliefs | None:
    probs = arrays.get(f"{name}_probs")
    targets = arrays.get(f"{name}_targets", arrays.get("targets"))
    return None if probs is None or targets is None else Beliefs(targets, probs)


def _fit(beliefs: Beliefs, pair: GraphPair) -> bool:
    """Whether each source entity has candidates that exist, with probabilities."""
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
    """Refuse a split whose parts are not those that the run had.

    A pair's checksum is of all its links: it stays the same where they are cut anew into labels
    and test links.

    Args:
        folder: of the run, which keeps its test links beside their ranks.
        split: as it is drawn now.
        labels: links that the run was certain of; ``None``: it did not keep them.

    Raises:
        DataError: the parts are others, or the file of the ranks cannot be read.
    """
    test = _test_links(folder)
    same = test is None or _as_set(test) == _as_set(split.test)
    if labels is not None:
        # protocol=released with AvoidConf is also certain of some test links
        trained = _as_set(labels) - _as_set(split.test)
        same = same and trained == _as_set(split.supervision.train)
    if not same:
        raise DataError(
            f"{folder} was made with other labels and test links than its data has now: put back "
            "the files of links that it had, or run it anew"
        )


def _test_links(folder: Path) -> IntArray | None:
    """Those that the run ranked; ``None``: the file is not there."""
    path = folder / RANKS_FILE
    if not path.exists():
        return None
    links = read_arrays(path).get("links")
    if links is None or links.dtype != np.int64 or links.ndim != 2 or links.shape[1] != 2:
        raise DataError(f"{path} is damaged: it holds no links")
    return links


def _as_set(links: IntArray) -> set[tuple[int, ...]]:
    return set(map(tuple, links.tolist()))
