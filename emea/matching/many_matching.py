"""Matchings in which an entity may have several counterparts."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from emea.kernels.flat_groups import places_in_groups
from emea.matching.beliefs import Beliefs, Matched

MOST_COUNTERPARTS = 50
"""Targets of a source entity that are kept, which limits the memory."""


@dataclass(frozen=True, eq=False)
class ManyMatching:
    """Holds matched pairs; each source entity has any number of targets.

    It has what :class:`emea.matching.beliefs.Matching` has for one-to-one matchings.

    Args:
        targets: ``[num_source, width]`` targets of each source entity, the most probable first.
        probs: ``[num_source, width]`` their probabilities, 0 in empty slots.
        num_target: Number of entities of the target graph.
    """

    targets: Tensor
    probs: Tensor
    num_target: int

    @classmethod
    def of_pairs(
        cls,
        pairs: Tensor,
        probs: Tensor,
        num_source: int,
        num_target: int,
        most: int = MOST_COUNTERPARTS,
    ) -> "ManyMatching":
        """Return a matching of distinct pairs.

        Args:
            pairs: ``[num_pairs, 2]``.
            probs: ``[num_pairs]`` their probabilities. The first of equally probable pairs comes
                first.
            num_source: Number of entities of the source graph.
            num_target: Number of entities of the target graph.
            most: Number of pairs of a source entity that are kept, the most probable ones; certain
                pairs are always kept.
        """
        order = torch.argsort(probs, descending=True, stable=True)
        order = order[torch.argsort(pairs[order, 0], stable=True)]
        (sources, targets), probs = pairs[order].T, probs[order].double()
        slots = places_in_groups(sources, num_source)
        kept = (slots < most) | (probs >= 1)
        sources, targets, probs, slots = (
            part[kept] for part in (sources, targets, probs, slots)
        )
        shape = num_source, int(slots.max()) + 1 if len(slots) else 1
        found = cls(targets.new_zeros(shape), probs.new_zeros(shape), num_target)
        found.targets[sources, slots] = targets
        found.probs[sources, slots] = probs
        return found

    @cached_property
    def sources(self) -> Tensor:
        """``[num_matched]`` source entities that have a match, ascending."""
        return (self.probs[:, 0] > 0).nonzero().squeeze(1)

    def pairs(self) -> Tensor:
        """Return ``[num_pairs, 2]`` matched source and target entities."""
        sources, slots = (self.probs > 0).nonzero(as_tuple=True)
        return torch.stack([sources, self.targets[sources, slots]], dim=1)

    def pair_probs(self) -> Tensor:
        """Return ``[num_pairs]`` the probability of each pair of ``pairs``."""
        return self.probs[self.probs > 0]

    def matched(self, sources: Tensor) -> Matched:
        """Return the matches of some source entities."""
        index, slots = (self.probs[sources] > 0).nonzero(as_tuple=True)
        rows = sources[index]
        return Matched(index, self.targets[rows, slots], self.probs[rows, slots])

    def source_probs(self) -> Tensor:
        """Return the probability of each source entity's best match, 0 if it has no match."""
        return self.probs[:, 0]

    def target_probs(self) -> Tensor:
        """Return the probability of each target entity's best match, 0 if it has no match."""
        probs = self.probs.new_zeros(self.num_target)
        return probs.scatter_reduce_(0, self.pairs()[:, 1], self.pair_probs(), "amax")

    def beliefs(self) -> Beliefs:
        """Return beliefs over the matches of each entity; their probabilities need not sum to 1."""
        return Beliefs(self.targets, self.probs)

    def faded(self, share: float) -> "ManyMatching":
        """Return the same pairs with their evidence scaled by a factor."""
        probs = -torch.expm1(share * torch.log1p(-self.probs))
        probs = torch.where(self.probs < 1, probs, self.probs)
        return ManyMatching(self.targets, probs, self.num_target)

    def num_changes(self, other: "ManyMatching") -> int:
        """Return the number of pairs that only one of the two matchings contains."""
        keys = [
            pairs[:, 0] * self.num_target + pairs[:, 1]
            for pairs in (self.pairs(), other.pairs())
        ]
        num_shared = int(torch.isin(*keys).sum())
        return len(keys[0]) + len(keys[1]) - 2 * num_shared
