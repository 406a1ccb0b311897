"""Cross-domain similarity local scaling (Conneau et al., ICLR 2018)."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.matching.cosine import Cosine
from emea.matching.similarity import Similarity


@dataclass(frozen=True)
class CSLS:
    """Twice the cosine less each side's mean cosine to its nearest neighbours on the other.

    Args:
        k: neighbours in the mean.
    """

    k: int = 10

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"CSLS needs at least one neighbour, got k={self.k}")

    def __call__(self, source: Tensor, target: Tensor) -> Similarity:
        """Similarity of two sets of embeddings."""
        cosine = Cosine()(source, target)
        of_source, of_target = neighbourhood_means(cosine, self.k)
        return replace(cosine, scale=2.0, source_offset=of_source, target_offset=of_target)


def neighbourhood_means(similarity: Similarity, k: int) -> tuple[Tensor, Tensor]:
    """Mean of each entity's k best scores, for both sides, in one pass over the blocks."""
    of_source = []
    best = similarity.target.new_full((0, similarity.num_target), 0.0)
    for _, scores in similarity.blocks():
        of_source.append(scores.topk(min(k, similarity.num_target), dim=1).values.mean(1))
        block_best = scores.topk(min(k, len(scores)), dim=0).values
        merged = torch.cat([best, block_best])
        best = merged.topk(min(k, len(merged)), dim=0).values
    return torch.cat(of_source), best.mean(0)
