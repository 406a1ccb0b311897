"""A table of candidate pairs with one row per source entity."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from emea.kernels.flat_groups import places_in_groups
from emea.kernels.other_sums import Slots

OUT_OF_THE_QUESTION = -1e30
"""Logit of an impossible option; finite, so that rows without candidates are not NaN."""


class ScoredPairs(NamedTuple):
    """Holds pairs and their similarity; a pair may occur more than once."""

    sources: Tensor
    targets: Tensor
    scores: Tensor

    def joined(self, others: "ScoredPairs") -> "ScoredPairs":
        """Return these pairs, followed by the others."""
        return ScoredPairs(
            torch.cat([self.sources, others.sources]),
            torch.cat([self.targets, others.targets]),
            torch.cat([self.scores, others.scores]),
        )

    def among(self, pairs: Tensor, num_target: int) -> Tensor:
        """Return whether each pair is one of the given ``[num_pairs, 2]`` pairs."""
        keys = pairs[:, 0] * num_target + pairs[:, 1]
        return torch.isin(self.sources * num_target + self.targets, keys)

    def kept(self, chosen: Tensor) -> "ScoredPairs":
        """Return some of the pairs."""
        places = chosen.nonzero().squeeze(1)
        return ScoredPairs(
            self.sources[places], self.targets[places], self.scores[places]
        )


@dataclass(frozen=True, eq=False)
class PairTable:
    """Holds one row of candidates per source entity, padded to one width.

    Args:
        targets: ``[num_source, width]`` target ids; those of empty slots are arbitrary.
        scores: ``[num_source, width]`` similarity of each pair.
        filled: ``[num_source, width]`` whether a slot contains a pair.
        num_target: Number of entities of the target graph.
    """

    targets: Tensor
    scores: Tensor
    filled: Tensor
    num_target: int

    @property
    def num_source(self) -> int:
        """Number of entities of the source graph."""
        return len(self.targets)

    @cached_property
    def slots(self) -> Slots:
        """The pairs without their scores, and the places of each entity's pairs."""
        return Slots(self.targets, self.filled, self.num_target)

    def keys(self) -> Tensor:
        """Return one number per pair; those of empty slots are arbitrary."""
        sources = torch.arange(self.num_source, device=self.targets.device)
        return sources.unsqueeze(1) * self.num_target + self.targets

    def sum_by_target(self, values: Tensor) -> Tensor:
        """Return the sum of the values of each target's pairs, ``[num_target]``."""
        values = torch.where(self.filled, values, 0.0).flatten()
        return values.new_zeros(self.num_target).index_add_(
            0, self.targets.flatten(), values
        )

    def max_by_target(self, values: Tensor, least: Tensor) -> Tensor:
        """Return the largest value of each target's pairs, but at least ``least``."""
        places = torch.where(self.filled, self.targets, self.num_target).flatten()
        most = torch.cat([least, least.new_zeros(1)])
        return most.scatter_reduce_(0, places, values.flatten(), "amax")[:-1]

    def logsumexp_by_target(self, values: Tensor, other: Tensor) -> Tensor:
        """Return the log-sum-exp of the values of each target's pairs, ``[num_target]``.

        Args:
            values: ``[num_source, width]``.
            other: ``[num_target]`` one additional finite value per target.
        """
        most = self.max_by_target(values, other)
        total = self.sum_by_target((values - most[self.targets]).exp())
        return most + (total + (other - most).exp()).log()

    def marked(self, links: Tensor) -> Tensor:
        """Return whether a slot contains one of the links, ``[num_source, width]``."""
        targets = torch.full((self.num_source,), -1, device=links.device)
        targets[links[:, 0]] = links[:, 1]
        return (self.targets == targets.unsqueeze(1)) & self.filled


@dataclass(frozen=True, eq=False)
class LabelledSlots:
    """Holds the slots of a table whose beliefs follow from the labels.

    Args:
        certain: ``[num_source, width]`` whether a slot contains a label.
        impossible: ``[num_source, width]`` whether a slot is empty or contains another pair of a
            labelled entity.
    """

    certain: Tensor
    impossible: Tensor

    @classmethod
    def of(cls, table: PairTable, labels: Tensor) -> "LabelledSlots":
        """Find the slots of a table."""
        of_source = torch.zeros(
            table.num_source, dtype=torch.bool, device=labels.device
        )
        of_target = torch.zeros(
            table.num_target, dtype=torch.bool, device=labels.device
        )
        of_source[labels[:, 0]] = True
        of_target[labels[:, 1]] = True
        certain = table.marked(labels)
        excluded = of_source.unsqueeze(1) | of_target[table.targets] | ~table.filled
        return cls(certain, excluded & ~certain)

    def put_into(self, log_probs: Tensor) -> Tensor:
        """Make labelled pairs certain and the other pairs of their entities impossible."""
        possible = log_probs.masked_fill(self.impossible, -torch.inf)
        return possible.masked_fill_(self.certain, 0.0)


@dataclass(frozen=True, eq=False)
class PairRanking:
    """Holds pairs with scores; from both sides, they rank before all other pairs.

    Args:
        table: The pairs.
        scores: ``[num_source, width]`` scores; a larger score ranks first.
    """

    table: PairTable
    scores: Tensor


def tabulate(
    pairs: ScoredPairs, preference: Tensor, num_source: int, num_target: int, width: int
) -> PairTable:
    """Return the distinct pairs as a table; each row is sorted by preference and score.

    Args:
        pairs: The pairs.
        preference: ``[num_pairs]``: pairs with a larger value come first in their row, so that
            they are kept if a row is too long.
        num_source: Number of entities of the source graph.
        num_target: Number of entities of the target graph.
        width: Largest number of pairs per row.
    """
    keys = pairs.sources * num_target + pairs.targets
    keys, index = torch.unique(keys, return_inverse=True)
    scores = _largest(pairs.scores, index, len(keys))
    preference = _largest(preference.to(scores.dtype), index, len(keys))
    order = torch.argsort(scores, descending=True, stable=True)
    order = order[torch.argsort(preference[order], descending=True, stable=True)]
    order = order[torch.argsort(keys[order] // num_target, stable=True)]
    keys = keys[order]
    scores = scores[order]
    rows = keys // num_target
    slots = places_in_groups(keys // num_target, num_source)
    kept = (slots < width).nonzero().squeeze(1)
    rows = rows[kept]
    slots = slots[kept]
    keys = keys[kept]
    scores = scores[kept]
    shape = num_source, int(slots.max()) + 1 if len(slots) else 1
    table = PairTable(
        targets=torch.zeros(shape, dtype=torch.int64, device=keys.device),
        scores=scores.new_zeros(shape),
        filled=torch.zeros(shape, dtype=torch.bool, device=keys.device),
        num_target=num_target,
    )
    table.targets[rows, slots] = keys % num_target
    table.scores[rows, slots] = scores
    table.filled[rows, slots] = True
    return table


def widened(values: Tensor, width: int, filler: float = 0.0) -> Tensor:
    """Return the values, padded along dimension 1 with fillers for empty slots to the width."""
    shape = list(values.shape)
    shape[1] = width - shape[1]
    return (
        torch.cat([values, values.new_full(shape, filler)], dim=1)
        if shape[1]
        else values
    )


def _largest(values: Tensor, index: Tensor, size: int) -> Tensor:
    return values.new_full((size,), -torch.inf).scatter_reduce_(
        0, index, values, "amax"
    )
