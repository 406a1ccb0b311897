"""Cross-domain similarity local scaling (Conneau et al., ICLR 2018)."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from emea.matching.block_memory import in_smaller_blocks
from emea.matching.candidates import top_candidates
from emea.matching.search import ExactSearch, Search
from emea.matching.similarity import Cosine, Similarity


@dataclass(frozen=True)
class CSLS:
    """Computes twice the cosine minus both entities' mean cosine to their nearest neighbours.

    Args:
        k: Number of neighbours in the mean.
        search: Chooses the targets to compare.
    """

    k: int = 10
    search: Search = field(default_factory=ExactSearch)

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"CSLS needs at least one neighbour, got k={self.k}")

    def __call__(self, source: Tensor, target: Tensor) -> Similarity:
        """Return the similarity of two sets of embeddings."""
        cosine = Cosine(self.search)(source, target)
        of_source, of_target = neighbourhood_means(cosine, self.k)
        return replace(cosine, scale=2.0, source_offset=of_source, target_offset=of_target)


def neighbourhood_means(similarity: Similarity, k: int) -> tuple[Tensor, Tensor]:
    """Return the mean of the k best scores of each entity, for both sides."""
    if similarity.scope is None:
        return _means_in_one_pass(similarity, k)
    both = (similarity, similarity.reversed())
    of_source, of_target = (top_candidates(side, k).scores.mean(1) for side in both)
    return of_source, of_target


@in_smaller_blocks
def _means_in_one_pass(similarity: Similarity, k: int) -> tuple[Tensor, Tensor]:
    """Compute the means of both sides from the same blocks of scores.

    The memory of the results is allocated before the blocks. Small results allocated between the
    large blocks would fragment the heap, which would then grow with the number of blocks.
    """
    num_source, num_target = similarity.num_source, similarity.num_target
    of_source = similarity.source.new_empty(num_source)
    num_best = min(k, num_source)
    best = of_source.new_full((num_best, num_target), -torch.inf)
    merged = of_source.new_empty(2 * num_best, num_target)
    for rows, scores in similarity.blocks():
        of_source[rows] = scores.topk(min(k, num_target), dim=1).values.mean(1)
        of_block = min(num_best, len(scores))
        merged[:num_best] = best
        merged[num_best : num_best + of_block] = scores.topk(of_block, dim=0).values
        best.copy_(merged[: num_best + of_block].topk(num_best, dim=0).values)
    return of_source, best.mean(0)
