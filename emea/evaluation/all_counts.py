"""Counts of the targets that score better than a link's, by the scores of all pairs."""

import torch
from torch import Tensor

from emea.matching import compiled
from emea.matching.similarity import Similarity

OPERATIONS_PER_SCORE = 4
"""Approximate operations of torch for each score that is compared."""


def all_counts(
    similarity: Similarity, sources: Tensor, right: Tensor, num_pooled: int
) -> tuple[Tensor, Tensor]:
    """Count the targets with a better score than the right one, and those with an equal score.

    Args:
        similarity: Scores all pairs.
        sources: ``[num_links]`` source ids.
        right: ``[num_links]`` target ids.
        num_pooled: Number of targets of the pool, which come first.

    Returns:
        Two ``[2, num_links]`` counts, in the pool and among all targets.
    """
    # Results are written into preallocated memory, which avoids heap fragmentation.
    counts = torch.empty(2, 2, len(sources), dtype=torch.int64, device=sources.device)
    position = 0
    for rows, scores in similarity.blocks(sources):
        part = slice(position, position + len(rows))
        position += len(rows)
        # The score of the true target is read from the same block, so that ties are exact.
        reference = scores.gather(1, right[part].unsqueeze(1))
        for place, num_columns in enumerate((num_pooled, None)):
            found = rank_counts(scores, reference, num_columns)
            counts[0, place, part], counts[1, place, part] = found
    return counts[0], counts[1]


def rank_counts(
    scores: Tensor, reference: Tensor, num_columns: int | None = None
) -> tuple[Tensor, Tensor]:
    """Count the scores of each row that are better than the reference and that equal it.

    NaN counts as better, so that it never improves a metric.

    Args:
        scores: ``[n, m]``.
        reference: ``[n, 1]``.
        num_columns: Number of columns that count, from the first on; ``None`` means all.
    """
    num_columns = scores.shape[1] if num_columns is None else num_columns
    if compiled.worthwhile(scores, OPERATIONS_PER_SCORE * scores.numel()):
        not_better, equal = compiled.rank_counts(scores, reference, num_columns)
    else:
        scores = scores[:, :num_columns]
        not_better, equal = (scores <= reference).sum(1), (scores == reference).sum(1)
    return num_columns - not_better, equal
