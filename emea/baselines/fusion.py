"""An embedding's similarity mixed into the equivalences of reasoning."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.baselines.maximal_assignment import fixed_log_doubt
from emea.matching.similarity import Similarity
from emea.rules.implied_pairs import FIXED_POINT, ImpliedPairs


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
