"""Calibration of probabilities, and thresholds that reach a precision."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from emea.data.arrays import FloatArray, IntArray
from emea.matching.beliefs import Beliefs

NUM_BINS = 10
"""Bins of equal width between 0 and 1."""

CONFIDENCE = 0.95
"""Confidence level of the lower bound of a precision."""

Bin = dict[str, float]
"""``min_prob``, ``max_prob``, ``mean_prob``, ``accuracy`` and ``num_entities`` of a bin."""


def answer_calibration(answer: Beliefs, test: IntArray) -> dict[str, Any]:
    """Compute the expected calibration error and its bins on the test links.

    Entities without a match have no probability; they are counted.

    Args:
        answer: The matches; probability 0 means no match.
        test: ``[num_links, 2]`` test links.
    """
    judged = JudgedAnswer(answer, test)
    matched = judged.probs > 0
    bins = reliability_bins(judged.probs[matched], judged.right[matched])
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


@dataclass(frozen=True)
class Acceptance:
    """The effect of a threshold, measured on some links.

    Args:
        threshold: Minimum probability of an accepted match.
        num_links: Number of links.
        num_accepted: Number of links whose source entity has an accepted match.
        num_right: Number of links whose accepted match is correct.
    """

    threshold: float
    num_links: int
    num_accepted: int
    num_right: int

    @property
    def precision(self) -> float:
        """Share of the accepted matches that are correct; NaN if none is accepted."""
        return self.num_right / self.num_accepted if self.num_accepted else float("nan")

    @property
    def recall(self) -> float:
        """Share of the links with a correct match; NaN without links."""
        return self.num_right / self.num_links if self.num_links else float("nan")

    @property
    def precision_low(self) -> float:
        """The 95% lower confidence bound of the precision (Clopper and Pearson, 1934).

        It assumes a threshold that was fixed in advance. A threshold that was chosen on the same
        links tends to be slightly worse.
        """
        if not self.num_right:
            return 0.0 if self.num_accepted else float("nan")
        wrong = self.num_accepted - self.num_right
        # scipy.stats has the same quantile as beta.ppf, but its import takes a second
        from scipy.special import betaincinv

        return float(betaincinv(self.num_right, wrong + 1, 1 - CONFIDENCE))


class JudgedAnswer:
    """Probabilities and correctness of matches for the source entities of some links.

    Args:
        answer: The matches; probability 0 means no match.
        links: ``[num_links, 2]``.
        num_missed: Number of further links that no method can find.
    """

    def __init__(self, answer: Beliefs, links: IntArray, num_missed: int = 0) -> None:
        self.num_links = len(links) + num_missed
        sources, targets = links.T
        self.probs: FloatArray = answer.probs.max(1).values.double().cpu().numpy()[sources]
        self.right: npt.NDArray[np.bool_] = (
            answer.best_targets().cpu().numpy()[sources] == targets
        ) & (self.probs > 0)

    def at(self, threshold: float) -> Acceptance:
        """Measure the effect of a threshold."""
        taken = (self.probs >= threshold) & (self.probs > 0)
        num_right = int(self.right[taken].sum())
        return Acceptance(threshold, self.num_links, int(taken.sum()), num_right)

    def reaching(self, precision: float) -> Acceptance | None:
        """Find the lowest threshold that reaches a precision, or ``None`` if none does."""
        thresholds, num_accepted, num_right = self._curve()
        # The tolerance compensates for rounding of the precision.
        enough = np.flatnonzero(num_right >= precision * num_accepted - 1e-9)
        return self.at(float(thresholds[enough[-1]])) if len(enough) else None

    def most_precise(self) -> Acceptance | None:
        """Find the lowest threshold with the highest precision, or ``None`` without matches."""
        thresholds, num_accepted, num_right = self._curve()
        if not len(thresholds):
            return None
        precision = num_right / num_accepted
        return self.at(float(thresholds[np.flatnonzero(precision == precision.max())[-1]]))

    def _curve(self) -> tuple[FloatArray, IntArray, IntArray]:
        """Return distinct probabilities, highest first, with accepted and correct matches."""
        order = np.argsort(-self.probs, kind="stable")
        order = order[self.probs[order] > 0]
        probs = self.probs[order]
        # Equal probabilities are accepted together.
        last = np.flatnonzero(np.append(probs[1:] != probs[:-1], len(probs) > 0))
        num_right = np.cumsum(self.right[order].astype(np.int64))
        return probs[last], last + 1, num_right[last]
