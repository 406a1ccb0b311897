"""Conflicting predictions: several source entities that claim one target."""

import numpy as np
import numpy.typing as npt

from emea.data.arrays import IntArray
from emea.matching.matching import NOBODY


def conflict_share(targets: IntArray) -> float:
    """Share of the predictions whose target another entity claims too.

    Args:
        targets: ``[num_predictions]`` predicted target of each source entity; who has none
            (``NOBODY``) takes no part.
    """
    claims = targets[targets != NOBODY]
    return float(conflicting(claims).mean()) if len(claims) else 0.0


def conflicting(targets: IntArray) -> npt.NDArray[np.bool_]:
    """``[num_predictions]`` whether another entity claims the same target."""
    _, index, counts = np.unique(targets, return_inverse=True, return_counts=True)
    shared: npt.NDArray[np.bool_] = (counts[index] > 1) & (targets != NOBODY)
    return shared
