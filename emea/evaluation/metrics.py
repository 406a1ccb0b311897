"""Precision, recall and F1 of a mapping, its compatibility, accuracy by degree, paired tests."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emea.data.arrays import NO_MATCH, FloatArray, IntArray, are_among
from emea.data.settings import Cardinality
from emea.evaluation.metric_table import BY_NAME

if TYPE_CHECKING:  # commands that compare results need no torch
    from emea.matching.beliefs import Beliefs


def mapping_metrics(
    predicted: IntArray, gold: IntArray, num_missed: int = 0
) -> dict[str, float]:
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
    right = int(are_among(predicted, gold).sum())
    precision = right / len(predicted) if len(predicted) else 0.0
    recall = right / (len(gold) + num_missed)
    total = precision + recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / total if total else 0.0,
        "num_predicted": float(len(predicted)),
    }


def unknown_pairs(
    pairs: IntArray, known: IntArray, cardinality: Cardinality
) -> IntArray:
    """Return the pairs that known links do not decide.

    Args:
        pairs: ``[num_pairs, 2]``.
        known: ``[num_known, 2]`` links that the run may have used. They decide all pairs of their
            source entities, unless a source entity may have several targets.
        cardinality: How many counterparts an entity may have.
    """
    if cardinality.one_target:
        return pairs[~np.isin(pairs[:, 0], known[:, 0])]
    return pairs[~are_among(pairs, known)]


def answer_metrics(
    answer: "Beliefs",
    known: IntArray,
    test: IntArray,
    num_missed: int = 0,
    cardinality: Cardinality = Cardinality.ONE_TO_ONE,
) -> dict[str, float]:
    """Compute precision, recall and F1 over the pairs that known links do not decide.

    Hit@1 equals recall: the share of the test links in the alignment. An entity without a match
    counts as missed.

    Args:
        answer: The matches; probability 0 means no match.
        known: ``[num_known, 2]`` links that the run may have used.
        test: ``[num_links, 2]`` other links.
        num_missed: Number of further test links that no method can find.
        cardinality: How many counterparts an entity may have.
    """
    pairs = answer.pairs().cpu().numpy()
    mapping = mapping_metrics(
        unknown_pairs(pairs, known, cardinality), test, num_missed
    )
    decided = np.union1d(pairs[:, 0], known[:, 0])
    num_unmatched = float(answer.num_source - len(decided))
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
            rows.append(
                {"min_degree": start, "num_entities": int(inside.sum()), "hit@1": hit}
            )
    return rows


def link_scores(ranks: FloatArray, metric: str) -> FloatArray:
    """Return the value of each test link whose mean is a metric.

    Args:
        ranks: The rank of each link's target; infinity if it has none.
        metric: The name of the metric, such as ``hit@1``.
    """
    with np.errstate(divide="ignore"):
        values = BY_NAME[metric].of_links(ranks)
    return np.nan_to_num(values.astype(np.float64))


def paired_p(first: FloatArray, second: FloatArray) -> float:
    """Return the p-value of a paired two-tailed t-test; 1 if no value differs."""
    from scipy.stats import ttest_rel  # importing it takes long

    if np.array_equal(first, second):
        return 1.0
    return float(ttest_rel(first, second).pvalue)


def conflict_share(targets: IntArray) -> float:
    """Return the share of the predictions whose target is also predicted for another entity.

    Args:
        targets: ``[num_predictions]`` predicted target of each source entity; entities without
            one (``NO_MATCH``) are ignored.
    """
    claimed = targets != NO_MATCH
    return float(_conflicting(targets)[claimed].mean()) if claimed.any() else 0.0


def _conflicting(targets: IntArray) -> npt.NDArray[np.bool_]:
    """Return ``[num_predictions]`` whether another entity has the same target."""
    _, index, counts = np.unique(targets, return_inverse=True, return_counts=True)
    shared: npt.NDArray[np.bool_] = (counts[index] > 1) & (targets != NO_MATCH)
    return shared


NUM_BINS = 50
"""Bins of equal width between 0 and 1."""


def compatibility_metrics(
    values: FloatArray, targets: IntArray, judged: IntArray, linked: IntArray
) -> dict[str, Any]:
    """Compute mean, histogram and conflicts of a mapping over the judged entities.

    An entity without a match counts as 0 in the mean and in the histogram, and is ignored in the
    conflicts. Conflicts are counted among linked entities only: the match of an entity without a
    counterpart always conflicts with a true link, so otherwise no mapping that matches all entities
    could come close to the oracle's 0.

    Args:
        values: ``[num_source]`` compatibility of each source entity's match.
        targets: ``[num_source]`` that match, or ``NO_MATCH``.
        judged: Source entities of the test links.
        linked: Source entities of all links, including the test links.

    Returns:
        ``mean`` (NaN without judged entities), ``histogram`` (counts in ``NUM_BINS`` bins over
        [0, 1]), ``conflicts`` (share of the judged matches whose target another linked entity
        has; NaN without judged entities) and ``num_unmatched`` (judged entities without a match).
    """
    answered = judged[targets[judged] != NO_MATCH]
    seen = np.zeros(len(judged))
    seen[targets[judged] != NO_MATCH] = values[answered]
    claims = np.full_like(targets, NO_MATCH)
    claims[linked] = targets[linked]
    conflicts = float(_conflicting(claims)[answered].mean()) if len(answered) else 0.0
    return {
        "mean": float(seen.mean()) if len(seen) else float("nan"),
        "histogram": np.histogram(seen, bins=NUM_BINS, range=(0, 1))[0].tolist(),
        "conflicts": conflicts if len(judged) else float("nan"),
        "num_unmatched": len(judged) - len(answered),
    }
