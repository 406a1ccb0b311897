"""Conflicting predictions: several source entities that claim one target."""

import numpy as np

from emea.data.arrays import IntArray


def conflict_share(targets: IntArray) -> float:
    """Share of the predictions whose target another entity claims too.

    Args:
        targets: ``[num_predictions]`` predicted target of each source entity.
    """
    if not len(targets):
        return 0.0
    _, index, counts = np.unique(targets, return_inverse=True, return_counts=True)
    return float(np.mean(counts[index] > 1))
