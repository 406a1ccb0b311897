"""What a reasoning baseline is, and how it takes in a neural model."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.baselines.maximal_assignment import fixed_log_doubt
from emea.matching.matching import Matching
from emea.matching.similarity import Similarity
from emea.rules.implied_pairs import FIXED_POINT, ImpliedPairs


@dataclass(frozen=True, eq=False)
class ReasoningReport:
    """The state after one iteration, for whoever observes the run.

    Args:
        iteration: counts from 0 over the whole run.
        matching: what is matched now.
        num_changes: source entities that are matched otherwise than before.
        similarity: of the embedding that the reasoning uses; ``None`` where it uses none.
    """

    iteration: int
    matching: Matching
    num_changes: int
    similarity: Similarity | None = None


Observer = Callable[[ReasoningReport], None]

Embed = Callable[[Tensor], Similarity]
"""Trains an encoder on ``[num_links, 2]`` links and says how similar its entities are."""


class Reasoner(ABC):
    """Aligns two graphs from seeds."""

    @abstractmethod
    def align(self, seeds: Tensor, embed: Embed, observer: Observer) -> Matching:
        """The matching that the seeds lead to.

        Args:
            seeds: ``[num_seeds, 2]`` links that are certain.
            embed: trains an encoder, for those that use one.
            observer: told the state after each iteration; its answer is not used.
        """


@dataclass(frozen=True, eq=False)
class Fusion:
    """``(1 - weight) * probability + weight * cosine``, a negative cosine counting as 0.

    Args:
        similarity: of the embedding.
        weight: of the cosine.
    """

    similarity: Similarity
    weight: float

    def __call__(self, pairs: ImpliedPairs) -> ImpliedPairs:
        """The same pairs with the cosine mixed in."""
        probs = -torch.expm1(pairs.log_doubt.double() / FIXED_POINT)
        cosines = self.cosines(pairs.sources, pairs.targets)
        mixed = (1 - self.weight) * probs + self.weight * cosines
        return pairs._replace(log_doubt=fixed_log_doubt(mixed))

    def cosines(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Cosine of each pair, at least 0."""
        found = self.similarity
        plain = replace(
            found,
            source_offset=torch.zeros_like(found.source_offset),
            target_offset=torch.zeros_like(found.target_offset),
            scale=1.0,
        )
        return plain.of_pairs(sources, targets).double().clamp(0, 1)
