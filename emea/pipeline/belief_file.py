"""The beliefs that a run left, read back and checked against its graphs."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.errors import DataError
from emea.matching.beliefs import Beliefs
from emea.pipeline.run_files import read_arrays

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
