"""Which source entity is matched to which target entity, and how surely."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs

NOBODY = -1
"""Target of an entity without a match."""


@dataclass(frozen=True, eq=False)
class Matching:
    """At most one counterpart for each entity of either side.

    Args:
        targets: ``[num_source]`` target of each source entity, ``NOBODY`` where it has none.
        probs: ``[num_source]`` probability of each match, 0 where there is none.
        num_target: entities of the target graph.
    """

    targets: Tensor
    probs: Tensor
    num_target: int

    @classmethod
    def of_links(cls, links: Tensor, num_source: int, num_target: int) -> "Matching":
        """The matching that is certain of the links and has no others."""
        targets = torch.full((num_source,), NOBODY, device=links.device)
        probs = torch.zeros(num_source, dtype=torch.float64, device=links.device)
        targets[links[:, 0]] = links[:, 1]
        probs[links[:, 0]] = 1
        return cls(targets, probs, num_target)

    @property
    def sources(self) -> Tensor:
        """``[num_pairs]`` source entities that have a match, ascending."""
        return (self.targets >= 0).nonzero().squeeze(1)

    def pairs(self) -> Tensor:
        """``[num_pairs, 2]`` matched source and target entities."""
        return torch.stack([self.sources, self.targets[self.sources]], dim=1)

    def target_probs(self) -> Tensor:
        """``[num_target]`` probability of each target entity's match, 0 where it has none."""
        probs = self.probs.new_zeros(self.num_target)
        probs[self.targets[self.sources]] = self.probs[self.sources]
        return probs

    def beliefs(self) -> Beliefs:
        """The matching as beliefs over one candidate each; without a match it has no chance."""
        return Beliefs(self.targets.clamp(min=0).unsqueeze(1), self.probs.unsqueeze(1))

    def faded(self, share: float) -> "Matching":
        """The same pairs, of whose evidence a share is left."""
        probs = -torch.expm1(share * torch.log1p(-self.probs))
        return replace(self, probs=torch.where(self.probs < 1, probs, self.probs))

    def joined(self, other: "Matching") -> "Matching":
        """These pairs, and the other's pairs of entities that have none here."""
        free = (self.targets < 0) & (other.targets >= 0)
        free &= ~torch.isin(other.targets, self.targets[self.sources])
        return Matching(
            torch.where(free, other.targets, self.targets),
            torch.where(free, other.probs, self.probs),
            self.num_target,
        )

    def num_changes(self, other: "Matching") -> int:
        """Source entities that the two match differently."""
        return int((self.targets != other.targets).sum())
