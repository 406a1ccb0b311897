"""Precision, recall and F1 of a mapping, accuracy by degree, and paired tests of metrics."""

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.matching.beliefs import Beliefs


def mapping_metrics(predicted: IntArray, gold: IntArray, num_missed: int = 0) -> dict[str, float]:
    """Compare predicted pairs with the true links.

    A prediction for an entity without a counterpart lowers the precision, as it would for a user
    of the mapping. Without true links, the metrics are NaN.

    Args:
        predicted: ``[n, 2]`` predicted (source, target) pairs, without duplicates.
        gold: ``[m, 2]`` true links.
        num_missed: Number of further true links that no method can find.
    """
    if not len(gold):
        unknown = dict.fromkeys(("precision", "recall", "f1"), float("nan"))
        return {**unknown, "num_predicted": float(len(predicted))}
    right = num_shared(predicted, gold)
    precision = right / len(predicted) if len(predicted) else 0.0
    recall = right / (len(gold) + num_missed)
    total = precision + recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / total if total else 0.0,
        "num_predicted": float(len(predicted)),
    }


def num_shared(left: IntArray, right: IntArray) -> int:
    """Return the number of pairs that occur in both arrays; neither contains duplicates."""
    width = 1 + max((int(pairs[:, 1].max()) for pairs in (left, right) if len(pairs)), default=0)
    first, second = (pairs[:, 0] * width + pairs[:, 1] for pairs in (left, right))
    return len(np.intersect1d(first, second, assume_unique=True))


def answer_metrics(
    answer: Beliefs, known: IntArray, test: IntArray, num_missed: int = 0
) -> dict[str, float]:
    """Compute precision, recall and F1 over the source entities without a label.

    Hit@1 equals recall: the share of the test links in the alignment. An entity without a match
    counts as missed.

    Args:
        answer: The matches; probability 0 means no match.
        known: ``[num_known]`` source entities whose label the run may have used.
        test: ``[num_links, 2]`` test links of other source entities.
        num_missed: Number of further test links that no method can find.
    """
    judged = np.setdiff1d(np.arange(answer.num_source), known)
    matched = judged[answer.probs.max(1).values.cpu().numpy()[judged] > 0]
    pairs = np.stack([matched, answer.best_targets().cpu().numpy()[matched]], axis=1)
    mapping = mapping_metrics(pairs, test, num_missed)
    num_unmatched = float(len(judged) - len(matched))
    return {"hit@1": mapping["recall"], **mapping, "num_unmatched": num_unmatched}


BUCKET_STARTS = (0, 1, 2, 4, 8, 16, 32)
"""Lower bounds of the degree buckets; the last bucket has no upper bound."""


def accuracy_by_degree(ranks: FloatArray, degrees: IntArray) -> list[dict[str, float]]:
    """Compute Hit@1 for each non-empty bucket of degrees."""
    bucket = np.searchsorted(BUCKET_STARTS, degrees, side="right") - 1
    rows = []
    for index, start in enumerate(BUCKET_STARTS):
        inside = bucket == index
        if inside.any():
            hit = float(np.mean(ranks[inside] <= 1))
            rows.append({"min_degree": start, "num_entities": int(inside.sum()), "hit@1": hit})
    return rows


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
