"""Beliefs about the counterpart of each source entity, q(y_e), over a few candidates."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Holds the candidates of each source entity and their probabilities.

    The remaining probability of a row belongs to targets that are not candidates.

    Args:
        targets: ``[num_source, k]`` candidate target ids, best by the neural model first.
        probs: ``[num_source, k]`` their probabilities, rows summing to at most 1.
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

    def sampled_targets(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw a candidate of each source entity in proportion to its probability."""
        probs = self.probs + 1e-30  # rows without any probability are sampled uniformly
        slots = torch.multinomial(probs, 1, generator=generator)
        return self.targets.gather(1, slots).squeeze(1)

    def clamped(self, links: Tensor) -> "Beliefs":
        """Return the beliefs, with probability 1 for each link of a linked source entity.

        If the label is a candidate, it keeps its slot. Otherwise it takes the last slot. The other
        slots keep their targets, so that a rule can still evaluate them.
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
        """Return the beliefs without the links' entities of both sides.

        The rows of these source entities become empty, and these targets get probability 0. The
        other candidates do not gain that probability: an entity that was certain of a removed
        target may have no counterpart at all.
        """
        sources, labels = links.T
        probs = self.probs.masked_fill(torch.isin(self.targets, labels), 0)
        probs[sources] = 0
        return replace(self, probs=probs)

    def excluding(self, pairs: Tensor, num_target: int) -> "Beliefs":
        """Return the beliefs in which some pairs have probability 0.

        The other candidates do not gain that probability, because the entity may have no
        counterpart at all.

        Args:
            pairs: ``[num_pairs, 2]`` source and target ids.
            num_target: Number of entities of the target graph.
        """
        sources = torch.arange(self.num_source, device=self.targets.device).unsqueeze(1)
        excluded = torch.isin(
            sources * num_target + self.targets, pairs[:, 0] * num_target + pairs[:, 1]
        )
        return replace(self, probs=self.probs.masked_fill(excluded, 0))

    def hardened(self) -> "Beliefs":
        """Return beliefs with all probability on the best candidate; empty rows stay empty."""
        slots = self.best_slots().unsqueeze(1)
        sure = (self.probs.gather(1, slots) > 0).to(self.probs.dtype)
        return replace(self, probs=torch.zeros_like(self.probs).scatter_(1, slots, sure))


def certain_beliefs(links: Tensor, num_source: int) -> Beliefs:
    """Return beliefs that contain only the links: one slot per entity, empty without a link."""
    targets = torch.zeros(num_source, 1, dtype=torch.int64, device=links.device)
    probs = torch.zeros(num_source, 1, device=links.device)
    targets[links[:, 0], 0] = links[:, 1]
    probs[links[:, 0]] = 1
    return Beliefs(targets=targets, probs=probs)
