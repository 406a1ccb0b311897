"""How many scores of each row are better than a reference, and how many equal it."""

import torch
from torch import Tensor

from emea.kernels import choice
from emea.kernels.numba_calls import arrays, score_loops
from emea.runtime.threads import available_threads, in_threads, index_ranges

OPERATIONS_PER_SCORE = 4
"""Approximate operations of torch for each score that is compared."""


def torch_counts(scores: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many scores of each row are at most the reference, and how many equal it."""
    not_better = (scores <= reference).sum(1)
    equal = (scores == reference).sum(1)
    return not_better, equal


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
    if choice.uses_numba(scores, OPERATIONS_PER_SCORE * scores.numel()):
        not_better, equal = _numba_counts(scores, reference, num_columns)
    else:
        not_better, equal = torch_counts(scores[:, :num_columns], reference)
    # comparisons with NaN are false, so it is counted with the better scores
    return num_columns - not_better, equal


def _numba_counts(
    scores: Tensor, reference: Tensor, num_columns: int
) -> tuple[Tensor, Tensor]:
    """Return the same counts of the first columns, each thread counting some rows."""
    counts = torch.empty(2, len(scores), dtype=torch.int64)
    given = (*arrays(scores, reference, counts), num_columns)
    parts = index_ranges(len(scores), available_threads())
    in_threads(score_loops().rank_counts, [(*part, *given) for part in parts])
    not_better, equal = counts
    return not_better, equal
