"""Cosine similarity."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import normalize

from emea.matching.similarity import Similarity


@dataclass(frozen=True)
class Cosine:
    """Cosine of the embeddings' angle."""

    def __call__(self, source: Tensor, target: Tensor) -> Similarity:
        """Similarity of two sets of embeddings."""
        return Similarity(
            source=normalize(source),
            target=normalize(target),
            source_offset=source.new_zeros(len(source)),
            target_offset=target.new_zeros(len(target)),
        )
