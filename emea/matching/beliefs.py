"""What is believed of each source entity's counterpart: q(y_e) over a few candidates."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Candidates and their probabilities; what they leave of 1 belongs to all other targets.

    Args:
        targets: ``[num_source, k]`` candidate target ids, best by the neural model first.
        probs: ``[num_source, k]`` their probabilities, rows summing to at most 1.
    """

    targets: Tensor
    probs: Tensor

    @property
    def num_source(self) -> int:
        """Source entities."""
        return len(self.targets)

    @property
    def num_candidates(self) -> int:
        """Candidates per source entity."""
        return self.targets.shape[1]

    @property
    def num_target(self) -> int:
        """Targets up to the last one that is named."""
        return int(self.targets.max()) + 1 if self.targets.numel() else 0

    @property
    def rest_prob(self) -> Tensor:
        """``[num_source]`` probability of all targets that are no candidates."""
        return (1 - self.probs.sum(1)).clamp(min=0)

    def best_slots(self) -> Tensor:
        """``[num_source]`` slot of the most probable candidate; ties go to the neural order."""
        return self.probs.argmax(1)

    def best_targets(self) -> Tensor:
        """``[num_source]`` the most probable candidate."""
        return self.targets.gather(1, self.best_slots().unsqueeze(1)).squeeze(1)

    def sampled_targets(self, generator: torch.Generator | None = None) -> Tensor:
        """``[num_source]`` a candidate drawn by its probability (of the candidates' mass)."""
        probs = self.probs + 1e-30  # a row without mass draws evenly instead of failing
        slots = torch.multinomial(probs, 1, generator=generator)
        return self.targets.gather(1, slots).squeeze(1)

    def clamped(self, links: Tensor) -> "Beliefs":
        """The same beliefs with the links' entities certain of their link.

        The label takes the slot it has among the candidates, or the last one where it is none
        of them; the other slots keep their targets, so a rule can still weigh them.
        """
        sources, labels = links.T
        targets, probs = self.targets.clone(), self.probs.clone()
        rows = targets[sources]
        found = rows == labels.unsqueeze(1)
        last = torch.full_like(labels, self.num_candidates - 1)
        slots = torch.where(found.any(1), found.int().argmax(1), last)
        targets[sources, slots] = labels
        probs[sources] = 0
        probs[sources, slots] = 1
        return replace(self, targets=targets, probs=probs)

    def without(self, links: Tensor) -> "Beliefs":
        """What is left to choose once the links' entities of both sides are taken.

        Their rows are empty, and they are nobody's candidates. What was believed of a target
        that is taken is not given to the other candidates: who was sure of it may well have no
        counterpart at all.
        """
        sources, labels = links.T
        probs = self.probs.masked_fill(torch.isin(self.targets, labels), 0)
        probs[sources] = 0
        return replace(self, probs=probs)

    def hardened(self) -> "Beliefs":
        """All probability on the best candidate; a row without any stays empty."""
        slots = self.best_slots().unsqueeze(1)
        sure = (self.probs.gather(1, slots) > 0).to(self.probs.dtype)
        return replace(self, probs=torch.zeros_like(self.probs).scatter_(1, slots, sure))


def certain_beliefs(links: Tensor, num_source: int) -> Beliefs:
    """Beliefs that hold the links and nothing else (one slot, empty where there is no link)."""
    targets = torch.zeros(num_source, 1, dtype=torch.int64, device=links.device)
    probs = torch.zeros(num_source, 1, device=links.device)
    targets[links[:, 0], 0] = links[:, 1]
    probs[links[:, 0]] = 1
    return Beliefs(targets=targets, probs=probs)
