"""Precision, recall and F1 of a predicted mapping."""

import numpy as np

from emea.data.arrays import IntArray


def mapping_metrics(predicted: IntArray, gold: IntArray) -> dict[str, float]:
    """How well a set of predicted pairs matches the gold links.

    A prediction for an entity without counterpart counts against precision, as it would for
    whoever uses the mapping. Without gold links there is nothing to judge by: not a number.

    Args:
        predicted: ``[n, 2]`` predicted (source, target) pairs, without repetition.
        gold: ``[m, 2]`` true links.
    """
    if not len(gold):
        unknown = dict.fromkeys(("precision", "recall", "f1"), float("nan"))
        return {**unknown, "num_predicted": float(len(predicted))}
    right = num_shared(predicted, gold)
    precision = right / len(predicted) if len(predicted) else 0.0
    recall = right / len(gold)
    total = precision + recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / total if total else 0.0,
        "num_predicted": float(len(predicted)),
    }


def num_shared(left: IntArray, right: IntArray) -> int:
    """How many pairs both have; neither repeats one."""
    width = 1 + max((int(pairs[:, 1].max()) for pairs in (left, right) if len(pairs)), default=0)
    first, second = (pairs[:, 0] * width + pairs[:, 1] for pairs in (left, right))
    return len(np.intersect1d(first, second, assume_unique=True))
