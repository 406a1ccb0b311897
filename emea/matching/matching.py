"""One-to-one matchings with probabilities."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from emea.data.arrays import NO_MATCH
from emea.matching.beliefs import Beliefs


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

    @cached_property
    def sources(self) -> Tensor:
        """``[num_pairs]`` source entities that have a match, ascending."""
        return (self.targets >= 0).nonzero().squeeze(1)

    def pairs(self) -> Tensor:
        """Return ``[num_pairs, 2]`` matched source and target entities."""
        return torch.stack([self.sources, self.targets[self.sources]], dim=1)

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
