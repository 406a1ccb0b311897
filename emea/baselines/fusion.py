"""An embedding's similarity mixed into the equivalences of reasoning."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.baselines.maximal_assignment import fixed_log_doubt
from emea.matching.similarity import Similarity
from emea.rules.implied_pairs import FIXED_POINT, ImpliedPairs

PAIRS_PER_BLOCK = 2**16
"""Pairs whose embeddings are held at a time."""


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
        parts = torch.split(sources, PAIRS_PER_BLOCK), torch.split(targets, PAIRS_PER_BLOCK)
        found = [
            (self.similarity.source[rows] * self.similarity.target[columns]).sum(1)
            for rows, columns in zip(*parts, strict=True)
        ]
        return torch.cat(found).double().clamp(0, 1)
