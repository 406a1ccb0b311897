"""Calibration of probabilities, and thresholds that reach a precision."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from emea.data.arrays import NO_MATCH, FloatArray, IntArray, are_among
from emea.data.sorting import average_ranks
from emea.matching.beliefs import Beliefs

NUM_BINS = 10
"""Bins of equal width between 0 and 1."""

CONFIDENCE = 0.95
"""Confidence level of the lower bound of a precision."""

NUM_POINTS = 101
"""Points of a precision-recall curve."""

ACCEPTED = 0.5
"""Probability from which an entity counts as one with a counterpart."""

SOME_PRECISIONS = (0.9, 0.95)
"""Precisions at which the recall is reported."""

Bin = dict[str, float]
"""``min_prob``, ``max_prob``, ``mean_prob``, ``accuracy`` and ``num_entities`` of a bin."""


def answer_calibration(
    answer: Beliefs, test: IntArray, given: IntArray | None = None
) -> dict[str, Any]:
    """Compute the expected calibration error and its bins on the test links.

    Entities without a match have no probability; they are counted.

    Args:
        answer: The matches; probability 0 means no match.
        test: ``[num_links, 2]`` test links.
        given: ``[num_given, 2]`` matches that are not judged.
    """
    judged = JudgedAnswer(answer, test, given=given)
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
    gaps = (
        row["num_entities"] * abs(row["mean_prob"] - row["accuracy"]) for row in bins
    )
    return sum(gaps) / total


def judged_sources(
    answer: Beliefs,
    test: IntArray,
    unmatched: IntArray,
    num_missed: int = 0,
    given: IntArray | None = None,
) -> "JudgedAnswer":
    """Judge the matches of all source entities whose counterpart, or lack of one, is known."""
    pairs = np.stack([unmatched, np.full_like(unmatched, NO_MATCH)], axis=1)
    # entities without a counterpart cannot be missed
    missed = num_missed - len(unmatched)
    return JudgedAnswer(answer, np.concatenate([test, pairs]), missed, given)


def source_evaluation(
    answer: Beliefs,
    beliefs: Beliefs,
    test: IntArray,
    unmatched: IntArray,
    *,
    num_missed: int = 0,
    given: IntArray | None = None,
) -> dict[str, Any]:
    """Evaluate matches over all source entities whose counterpart, or lack of one, is known."""
    judged = judged_sources(answer, test, unmatched, num_missed, given)
    probs = judged.probs
    right = judged.right
    thresholds, num_accepted, found = judged.curve()
    precision = found / np.maximum(num_accepted, 1)
    recall = found / max(1, judged.num_links)
    kept = np.unique(
        np.linspace(0, len(thresholds) - 1, min(NUM_POINTS, len(thresholds)), dtype=int)
    )
    bins = reliability_bins(probs[probs > 0], right[probs > 0])
    linked = np.unique(test[:, 0])  # an entity can have several links
    sources = np.concatenate([linked, unmatched])
    has_counterpart = np.arange(len(sources)) < len(linked)
    scores = beliefs.probs.max(1).values.double().cpu().numpy()[sources]
    last_precision, last_recall = (
        one[-1] if len(one) else 0.0 for one in (precision, recall)
    )
    return {
        "num_entities": len(sources),
        "num_without_counterpart": len(unmatched),
        "precision": float(last_precision),
        "recall": float(last_recall),
        "f1": _f1(float(last_precision), float(last_recall)),
        "recall_at_precision": {
            str(wanted): float(max(recall[precision >= wanted], default=0.0))
            for wanted in SOME_PRECISIONS
        },
        "ece": expected_calibration_error(bins),
        "bins": bins,
        "curve": [
            {"threshold": at, "precision": right, "recall": of_all}
            for at, right, of_all in np.stack([thresholds, precision, recall], axis=1)[
                kept
            ].tolist()
        ],
        "detection": detection(scores, has_counterpart)
        if len(unmatched) and len(test)
        else None,
        "two_step": two_step(answer, judged, sources, has_counterpart, given)
        if len(unmatched) and len(test)
        else None,
    }


def two_step(
    answer: Beliefs,
    judged: "JudgedAnswer",
    sources: IntArray,
    has_counterpart: npt.NDArray[np.bool_],
    given: IntArray | None = None,
) -> dict[str, dict[str, float]]:
    """Return the two evaluations of DBP2.0 (Sun et al., ACL 2021, section 5).

    A source entity counts as one without a counterpart if it has no match with a probability of at
    least 0.5. ``detection`` measures the entities that were found to have no counterpart.
    ``alignment``, their consolidated evaluation, measures the matches of the other entities. There
    a match of an entity without a counterpart is wrong, and an entity with a counterpart but
    without a match is missed.

    Args:
        answer: The matches.
        judged: The matches of the source entities, judged.
        sources: ``[n]`` the source entities.
        has_counterpart: ``[n]`` whether they have a counterpart.
        given: Matches that are not judged, because they were given.
    """
    _, probs = _judged_pairs(answer, sources, given)
    dropped = ~(probs >= ACCEPTED).any(1)
    right = int((dropped & ~has_counterpart).sum())
    precision = right / max(1, int(dropped.sum()))
    recall = right / max(1, int((~has_counterpart).sum()))
    accepted = judged.at(ACCEPTED)
    found = accepted.num_right / max(1, accepted.num_accepted), accepted.recall
    return {
        "detection": {
            "precision": precision,
            "recall": recall,
            "f1": _f1(precision, recall),
        },
        "alignment": {"precision": found[0], "recall": found[1], "f1": _f1(*found)},
    }


def detection(
    scores: FloatArray, has_counterpart: npt.NDArray[np.bool_]
) -> dict[str, float]:
    """Return the area under the ROC curve of a probability, and its precision and recall at 0.5."""
    num = int(has_counterpart.sum())
    num_without = int((~has_counterpart).sum())
    above = average_ranks(scores)[has_counterpart].sum() - num * (num + 1) / 2
    chosen = scores >= ACCEPTED
    right = int((chosen & has_counterpart).sum())
    precision = right / max(1, int(chosen.sum()))
    recall = right / max(1, num)
    return {
        "auc": float(above / (num * num_without)),
        "precision": precision,
        "recall": recall,
        "f1": _f1(precision, recall),
    }


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def confirmable(num_links: int) -> float:
    """Return the largest precision that so many links can confirm if all of them are correct.

    It is their 95% lower confidence bound.
    """
    return float((1 - CONFIDENCE) ** (1 / num_links)) if num_links else 0.0


def lower_bound(num_right: int, num: int) -> float:
    """Return the 95% lower confidence bound of a share (Clopper and Pearson, 1934)."""
    if not num_right:
        return 0.0
    # scipy.stats has the same quantile as beta.ppf, but its import takes a second
    from scipy.special import betaincinv

    return float(betaincinv(num_right, num - num_right + 1, 1 - CONFIDENCE))


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
        """The 95% lower confidence bound of the precision.

        It assumes a threshold that was fixed in advance. A threshold that was chosen on the same
        links tends to be slightly worse.
        """
        if not self.num_accepted:
            return float("nan")
        return lower_bound(self.num_right, self.num_accepted)


def _judged_pairs(
    answer: Beliefs, sources: IntArray, given: IntArray | None
) -> tuple[IntArray, FloatArray]:
    """Return the pairs of source entities and their probabilities; that of a given pair is 0."""
    targets = answer.targets.cpu().numpy()[sources]
    probs = answer.probs.double().cpu().numpy()[sources]
    columns = [np.broadcast_to(sources[:, None], targets.shape), targets]
    pairs = np.stack(columns, axis=2)
    if given is not None:
        probs = np.where(are_among(pairs, given), 0.0, probs)
    return pairs, probs


class JudgedAnswer:
    """Probabilities and correctness of matches for the source entities of some links.

    An entity with several matches has several entries, and one without a match has an entry with
    probability 0.

    Args:
        answer: The matches; probability 0 means no match.
        links: ``[num_links, 2]``.
        num_missed: Number of further links that no method can find.
        given: ``[num_given, 2]`` matches that are not judged, because they were given.
    """

    def __init__(
        self,
        answer: Beliefs,
        links: IntArray,
        num_missed: int = 0,
        given: IntArray | None = None,
    ) -> None:
        self.num_links = len(links) + num_missed
        sources, first = np.unique(links[:, 0], return_index=True)
        sources = links[np.sort(first), 0]
        self.sources: IntArray = sources
        pairs, probs = _judged_pairs(answer, sources, given)
        shown = probs > 0
        shown[:, 0] |= ~shown.any(1)
        self.probs: FloatArray = probs[shown]
        self.right: npt.NDArray[np.bool_] = are_among(pairs, links)[shown] & (
            self.probs > 0
        )

    def at(self, threshold: float) -> Acceptance:
        """Measure the effect of a threshold."""
        taken = (self.probs >= threshold) & (self.probs > 0)
        num_right = int(self.right[taken].sum())
        return Acceptance(threshold, self.num_links, int(taken.sum()), num_right)

    def contradicts(
        self, thresholds: FloatArray, precision: float
    ) -> npt.NDArray[np.bool_]:
        """Return for which thresholds the links show at 95% that a precision is not reached."""
        order = np.sort(self.probs), np.sort(self.probs[self.right])
        num, num_right = (len(one) - np.searchsorted(one, thresholds) for one in order)
        noise = 1.64 * np.sqrt(num * precision * (1 - precision))
        contradicted: npt.NDArray[np.bool_] = num_right < precision * num - noise
        return contradicted

    def curve(self) -> tuple[FloatArray, IntArray, IntArray]:
        """Return distinct probabilities, highest first, with accepted and correct matches."""
        order = np.argsort(-self.probs, kind="stable")
        order = order[self.probs[order] > 0]
        probs = self.probs[order]
        # Equal probabilities are accepted together.
        last = np.flatnonzero(np.append(probs[1:] != probs[:-1], len(probs) > 0))
        num_right = np.cumsum(self.right[order].astype(np.int64))
        return probs[last], last + 1, num_right[last]
