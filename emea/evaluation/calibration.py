"""Calibration: how well probabilities agree with accuracy."""

from typing import Any

import numpy as np
import numpy.typing as npt

from emea.data.arrays import FloatArray, IntArray
from emea.matching.beliefs import Beliefs

NUM_BINS = 10
"""Bins of equal width between 0 and 1."""

Bin = dict[str, float]
"""``min_prob``, ``max_prob``, ``mean_prob``, ``accuracy`` and ``num_entities`` of a bin."""


def answer_calibration(answer: Beliefs, test: IntArray) -> dict[str, Any]:
    """Compute the expected calibration error and its bins on the test links.

    Entities without a match have no probability; they are counted.

    Args:
        answer: The matches; probability 0 means no match.
        test: ``[num_links, 2]`` test links.
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
    """Group predictions into bins of equal width; empty bins are left out.

    Args:
        probs: ``[n]`` probability of each prediction; an edge belongs to the upper bin.
        right: ``[n]`` whether the prediction is correct.
        num_bins: Number of bins between 0 and 1.
    """
    edges = np.arange(num_bins + 1) / num_bins
    # The last bin includes both edges.
    place = np.clip(np.searchsorted(edges, probs, side="right") - 1, 0, num_bins - 1)
    counts, prob_sums, num_right = (
        np.bincount(place, weights, num_bins) for weights in (None, probs, right)
    )
    return [
        {
            "min_prob": float(edges[index]),
            "max_prob": float(edges[index + 1]),
            "mean_prob": float(prob_sums[index] / counts[index]),
            "accuracy": float(num_right[index] / counts[index]),
            "num_entities": int(counts[index]),
        }
        for index in np.flatnonzero(counts)
    ]


def expected_calibration_error(bins: list[Bin]) -> float:
    """Return the mean difference of probability and accuracy over the bins, weighted by their size.

    The result is NaN if there are no bins.
    """
    total = sum(row["num_entities"] for row in bins)
    if not total:
        return float("nan")
    gaps = (row["num_entities"] * abs(row["mean_prob"] - row["accuracy"]) for row in bins)
    return sum(gaps) / total
