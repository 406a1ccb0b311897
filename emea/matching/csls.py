"""Cross-domain similarity local scaling (Conneau et al., ICLR 2018)."""

from dataclasses import dataclass, field, replace

from torch import Tensor

from emea.matching import scanned_search
from emea.matching.best_scores import ColumnBests, best_of_rows
from emea.matching.candidates import top_candidates
from emea.matching.search import ExactSearch, Search
from emea.matching.settings import CSLSSettings
from emea.matching.similarity import Cosine, Similarity
from emea.runtime.block_memory import in_smaller_blocks


@dataclass(frozen=True)
class CSLS:
    """Computes twice the cosine minus both entities' mean cosine to their nearest neighbours.

    Args:
        k: Number of neighbours in the mean.
        search: Chooses the targets to compare.

    Example:
        Target 0 is near to both source entities. CSLS gives the second one its own target.

        >>> import torch
        >>> source = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
        >>> target = torch.tensor([[0.9, 0.44], [0.0, 1.0]])
        >>> rows = torch.arange(2)
        >>> Cosine()(source, target).scores(rows).argmax(1).tolist()
        [0, 0]
        >>> CSLS(k=2)(source, target).scores(rows).argmax(1).tolist()
        [0, 1]
    """

    k: int = CSLSSettings.k
    search: Search = field(default_factory=ExactSearch)

    def __call__(self, source: Tensor, target: Tensor) -> Similarity:
        """Return the similarity of two sets of embeddings."""
        cosine = Cosine(self.search)(source, target)
        of_source, of_target = neighbourhood_means(cosine, self.k)
        return replace(
            cosine, scale=2.0, source_offset=of_source, target_offset=of_target
        )


def neighbourhood_means(similarity: Similarity, k: int) -> tuple[Tensor, Tensor]:
    """Return the mean of the k best scores of each entity, for both sides."""
    both = (similarity, similarity.reversed())
    if similarity.scope is None and not all(
        scanned_search.usable(side, k) for side in both
    ):
        return _means_in_one_pass(similarity, k)
    of_source, of_target = (top_candidates(side, k).scores.mean(1) for side in both)
    return of_source, of_target


@in_smaller_blocks
def _means_in_one_pass(similarity: Similarity, k: int) -> tuple[Tensor, Tensor]:
    """Compute the means of both sides from the same blocks of scores.

    The memory of the results is allocated before the blocks. Small results allocated between the
    large blocks would fragment the heap, which would then grow with the number of blocks.
    """
    num_source = similarity.num_source
    num_target = similarity.num_target
    of_source = similarity.source.new_empty(num_source)
    of_target = ColumnBests(min(k, num_source), num_target, of_source)
    for rows, scores in similarity.blocks():
        of_source[rows] = best_of_rows(scores, min(k, num_target))[0].mean(1)
        of_target.add(scores)
    return of_source, of_target.values.mean(0)
