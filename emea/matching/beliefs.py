"""Beliefs about the counterpart of each source entity, q(y_e), and one-to-one matchings."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from emea.data.arrays import NO_MATCH
from emea.kernels.flat_groups import group_sizes
from emea.matching.pair_table import PairRanking


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Holds the candidates of each source entity and their probabilities.

    The remaining probability of a row belongs to targets that are not candidates.

    Args:
        targets: ``[num_source, k]`` candidate target ids, best by the neural model first.
        probs: ``[num_source, k]`` their probabilities, rows summing to at most 1.

    Examples:
        >>> targets = torch.tensor([[2, 0], [1, 2]])
        >>> beliefs = Beliefs(targets, torch.tensor([[0.7, 0.2], [0.5, 0.1]]))
        >>> beliefs.num_source, beliefs.num_candidates, beliefs.best_targets().tolist()
        (2, 2, [2, 1])
    """

    targets: Tensor
    probs: Tensor

    @property
    def num_source(self) -> int:
        """Number of source entities."""
        return len(self.targets)

    @property
    def num_candidates(self) -> int:
        """Number of candidates per source entity."""
        return self.targets.shape[1]

    @property
    def num_target(self) -> int:
        """Largest target id plus 1."""
        return int(self.targets.max()) + 1 if self.targets.numel() else 0

    @property
    def rest_prob(self) -> Tensor:
        """``[num_source]`` probability of all targets that are not candidates."""
        return (1 - self.probs.sum(1)).clamp(min=0)

    def best_slots(self) -> Tensor:
        """Return the slot of the most probable candidate; the neural order breaks ties."""
        return self.probs.argmax(1)

    def best_targets(self) -> Tensor:
        """Return the most probable candidate of each source entity."""
        return self.targets.gather(1, self.best_slots().unsqueeze(1)).squeeze(1)

    def pairs(self) -> Tensor:
        """Return ``[num_pairs, 2]`` sources and targets of all pairs of positive probability."""
        sources, slots = (self.probs > 0).nonzero(as_tuple=True)
        return torch.stack([sources, self.targets[sources, slots]], dim=1)

    def clamped(self, links: Tensor) -> "Beliefs":
        """Return the beliefs, with probability 1 for each link of a linked source entity.

        If the label is a candidate, it keeps its slot. Otherwise it takes the last slot. The other
        slots keep their targets, so that a rule can still evaluate them.
        """
        sources, labels = links.T
        targets = self.targets.clone()
        probs = self.probs.clone()
        rows = targets[sources]
        found = rows == labels.unsqueeze(1)
        last = torch.full_like(labels, self.num_candidates - 1)
        slots = torch.where(found.any(1), found.int().argmax(1), last)
        targets[sources, slots] = labels
        probs[sources] = 0
        probs[sources, slots] = 1
        return replace(self, targets=targets, probs=probs)

    def without(self, links: Tensor) -> "Beliefs":
        """Return the beliefs without the links' entities of both sides.

        The rows of these source entities become empty, and these targets get probability 0. The
        other candidates do not gain that probability: an entity that was certain of a removed
        target may have no counterpart at all.
        """
        sources, labels = links.T
        probs = self.probs.masked_fill(torch.isin(self.targets, labels), 0)
        probs[sources] = 0
        return replace(self, probs=probs)

    def within(self, sources: Tensor, targets: Tensor) -> "Beliefs":
        """Return the beliefs about pairs of some source and some target entities only.

        All other pairs have probability 0. The remaining candidates do not gain it.
        """
        inside = torch.isin(self.targets, targets)
        rows = torch.zeros(self.num_source, dtype=torch.bool, device=sources.device)
        rows[sources] = True
        return replace(self, probs=self.probs * (inside & rows.unsqueeze(1)))

    def to(self, device: torch.device | str) -> "Beliefs":
        """Return the beliefs on a device."""
        return Beliefs(self.targets.to(device), self.probs.to(device))

    def hardened(self) -> "Beliefs":
        """Return beliefs with all probability on the best candidate; empty rows stay empty."""
        slots = self.best_slots().unsqueeze(1)
        sure = (self.probs.gather(1, slots) > 0).to(self.probs.dtype)
        return replace(
            self, probs=torch.zeros_like(self.probs).scatter_(1, slots, sure)
        )


class Matched(NamedTuple):
    """Holds the matches of some source entities.

    Args:
        places: Place of each match's source entity among these entities, ascending.
        targets: Target entity of each match.
        probs: Probability of each match.
    """

    places: Tensor
    targets: Tensor
    probs: Tensor


@dataclass(frozen=True, eq=False)
class Matching:
    """Holds a one-to-one matching: each entity of either side has at most one counterpart.

    Args:
        targets: ``[num_source]`` target of each source entity, or ``NO_MATCH``.
        probs: ``[num_source]`` probability of each match, 0 for entities without a match.
        num_target: Number of entities of the target graph.
    """

    targets: Tensor
    probs: Tensor
    num_target: int

    @classmethod
    def of_links(cls, links: Tensor, num_source: int, num_target: int) -> "Matching":
        """Return a matching that consists of the links, with probability 1."""
        targets = torch.full((num_source,), NO_MATCH, device=links.device)
        probs = torch.zeros(num_source, dtype=torch.float64, device=links.device)
        targets[links[:, 0]] = links[:, 1]
        probs[links[:, 0]] = 1
        return cls(targets, probs, num_target)

    @classmethod
    def mutual(cls, ranking: PairRanking) -> "Matching":
        """Return the pairs in which each entity is the other's best, by scores that are logarithms.

        If a source entity has several candidates with the same score, their similarity decides. If
        the similarity is equal too, the entity has no match. If several source entities tie for a
        target, none of them has it: in many datasets, counterparts have equal ids, so ids must not
        break ties.
        """
        table = ranking.table
        best = ranking.scores.max(1, keepdim=True)
        targets, similarity, chosen = (
            values.gather(1, best.indices)
            for values in (table.targets, table.scores, table.filled)
        )
        equal = (
            (ranking.scores == best.values)
            & (table.scores == similarity)
            & table.filled
        )
        lowest = ranking.scores.new_full((table.num_target,), -torch.inf)
        of_target = table.max_by_target(ranking.scores, lowest)
        chosen &= (best.values >= of_target[targets]) & (
            equal.sum(1, keepdim=True) == 1
        )
        targets = targets.squeeze(1)
        chosen = chosen.squeeze(1)
        chosen = chosen & (group_sizes(targets, table.num_target, chosen)[targets] == 1)
        probs = torch.where(chosen, best.values.exp().squeeze(1), 0.0).double()
        return cls(torch.where(chosen, targets, NO_MATCH), probs, table.num_target)

    @cached_property
    def sources(self) -> Tensor:
        """``[num_pairs]`` source entities that have a match, ascending."""
        return (self.targets >= 0).nonzero().squeeze(1)

    def to(self, device: torch.device | str) -> "Matching":
        """Return the matching on a device."""
        return replace(
            self, targets=self.targets.to(device), probs=self.probs.to(device)
        )

    def pairs(self) -> Tensor:
        """Return ``[num_pairs, 2]`` matched source and target entities."""
        return torch.stack([self.sources, self.targets[self.sources]], dim=1)

    def pair_probs(self) -> Tensor:
        """Return ``[num_pairs]`` the probability of each pair of ``pairs``."""
        return self.probs[self.sources]

    def matched(self, sources: Tensor) -> Matched:
        """Return the matches of some source entities."""
        targets = self.targets[sources]
        index = (targets >= 0).nonzero().squeeze(1)
        return Matched(index, targets[index], self.probs[sources[index]])

    def source_probs(self) -> Tensor:
        """Return the probability of each source entity's match, 0 if it has no match."""
        return self.probs

    def target_probs(self) -> Tensor:
        """Return the probability of each target entity's match, 0 if it has no match."""
        probs = self.probs.new_zeros(self.num_target)
        probs[self.targets[self.sources]] = self.probs[self.sources]
        return probs

    def beliefs(self) -> Beliefs:
        """Return beliefs over one candidate per entity; without a match, its probability is 0."""
        return Beliefs(self.targets.clamp(min=0).unsqueeze(1), self.probs.unsqueeze(1))

    def faded(self, share: float) -> "Matching":
        """Return the same pairs with their evidence scaled by a factor."""
        probs = -torch.expm1(share * torch.log1p(-self.probs))
        return replace(self, probs=torch.where(self.probs < 1, probs, self.probs))

    def joined(self, other: "Matching") -> "Matching":
        """Return these pairs and those pairs of the other matching whose entities have no match."""
        free = (self.targets < 0) & (other.targets >= 0)
        free &= ~torch.isin(other.targets, self.targets[self.sources])
        return Matching(
            torch.where(free, other.targets, self.targets),
            torch.where(free, other.probs, self.probs),
            self.num_target,
        )

    def num_changes(self, other: "Matching") -> int:
        """Return the number of source entities that the two matchings match differently."""
        return int((self.targets != other.targets).sum())
