"""Whether probabilities can be taken at their word."""

from typing import Any

import numpy as np
import numpy.typing as npt

from emea.data.arrays import FloatArray, IntArray
from emea.matching.beliefs import Beliefs

NUM_BINS = 10
"""Bins of equal width between 0 and 1."""

Bin = dict[str, float]
"""``min_prob`` and ``max_prob`` of a bin, ``mean_prob``, ``accuracy`` and ``num_entities`` in it"""


def answer_calibration(answer: Beliefs, test: IntArray) -> dict[str, Any]:
    """Expected calibration error and bins of an answer's probabilities on the test links.

    Entities that the answer leaves unmatched have no probability to judge: they are counted.

    Args:
        answer: its most probable target is what it says of an entity, nothing where that has
            probability 0.
        test: ``[num_links, 2]``.
    """
    sources, targets = test.T
    probs = answer.probs.max(1).values.double().cpu().numpy()[sources]
    right = answer.best_targets().cpu().numpy()[sources] == targets
    matched = probs > 0
    bins = reliability_bins(probs[matched], right[matched])
    return {
        "ece": expected_calibration_error(bins),
        "bins": bins,
        "num_entities": int(matched.sum()),
        "num_unmatched": int((~matched).sum()),
    }


def reliability_bins(
    probs: FloatArray, right: npt.NDArray[np.bool_], num_bins: int = NUM_BINS
) -> list[Bin]:
    """The bins of equal width that hold a prediction, with what was said and what came true.

    Args:
        probs: ``[n]`` probability of each prediction; on the edge of two bins it is the upper's.
        right: ``[n]`` whether it came true.
        num_bins: bins between 0 and 1.
    """
    edges = np.arange(num_bins + 1) / num_bins
    # the last bin has both its edges
    place = np.clip(np.searchsorted(edges, probs, side="right") - 1, 0, num_bins - 1)
    counts, said, came_true = (
        np.bincount(place, weights, num_bins) for weights in (None, probs, right)
    )
    return [
        {
            "min_prob": float(edges[index]),
            "max_prob": float(edges[index + 1]),
            "mean_prob": float(said[index] / counts[index]),
            "accuracy": float(came_true[index] / counts[index]),
            "num_entities": int(counts[index]),
        }
        for index in np.flatnonzero(counts)
    ]


def expected_calibration_error(bins: list[Bin]) -> float:
    """Mean distance of probability and accuracy over the bins, weighted by their entities.

    Not a number where there are none.
    """
    total = sum(row["num_entities"] for row in bins)
    if not total:
        return float("nan")
    gaps = (row["num_entities"] * abs(row["mean_prob"] - row["accuracy"]) for row in bins)
    return sum(gaps) / total
