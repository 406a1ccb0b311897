"""Paired two-tailed t-tests over test entities."""

import numpy as np

from emea.data.arrays import FloatArray


def link_scores(ranks: FloatArray, metric: str) -> FloatArray:
    """Return the value of each test link whose mean is a metric.

    Args:
        ranks: The rank of each link's target; infinity if it has none.
        metric: ``hit@1``, or ``mrr`` for reciprocal ranks.
    """
    with np.errstate(divide="ignore"):
        values = ranks <= 1 if metric == "hit@1" else 1 / ranks
    return np.nan_to_num(values.astype(np.float64))


def paired_p(first: FloatArray, second: FloatArray) -> float:
    """Return the p-value of a paired two-tailed t-test; 1 if no value differs."""
    from scipy.stats import ttest_rel  # importing it takes long

    if np.array_equal(first, second):
        return 1.0
    return float(ttest_rel(first, second).pvalue)
