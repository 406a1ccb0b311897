"""The interface of reasoning baselines, and how they use an encoder."""

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
    """The state after one iteration, for observers of the run.

    Args:
        iteration: Number of the iteration in the whole run, from 0.
        matching: The current matching.
        num_changes: Number of source entities whose match changed.
        similarity: Similarity of the embedding in use, or ``None``.
    """

    iteration: int
    matching: Matching
    num_changes: int
    similarity: Similarity | None = None


Observer = Callable[[ReasoningReport], None]

Embed = Callable[[Tensor], Similarity]
"""Trains an encoder on ``[num_links, 2]`` links and returns the similarity of its embeddings."""


class Reasoner(ABC):
    """Aligns two graphs from seed links by reasoning."""

    @abstractmethod
    def align(self, seeds: Tensor, embed: Embed, observer: Observer) -> Matching:
        """Align from seed links.

        Args:
            seeds: ``[num_seeds, 2]`` links that are certain.
            embed: Trains an encoder, for baselines that use one.
            observer: Called with the state after each iteration.
        """


@dataclass(frozen=True, eq=False)
class Fusion:
    """Mixes probabilities with cosines: ``(1 - weight) * probability + weight * cosine``.

    Negative cosines count as 0.

    Args:
        similarity: Similarity of the embedding.
        weight: Weight of the cosine.
    """

    similarity: Similarity
    weight: float

    def __call__(self, pairs: ImpliedPairs) -> ImpliedPairs:
        """Mix the cosine into the probabilities of pairs."""
        probs = -torch.expm1(pairs.log_doubt.double() / FIXED_POINT)
        cosines = self.cosines(pairs.sources, pairs.targets)
        mixed = (1 - self.weight) * probs + self.weight * cosines
        return pairs._replace(log_doubt=fixed_log_doubt(mixed))

    def cosines(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the cosine of each pair, at least 0."""
        found = self.similarity
        plain = replace(
            found,
            source_offset=torch.zeros_like(found.source_offset),
            target_offset=torch.zeros_like(found.target_offset),
            scale=1.0,
        )
        return plain.of_pairs(sources, targets).double().clamp(0, 1)
