"""Precision, recall and F1 computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.evaluation.metrics import mapping_metrics

NONE = np.zeros((0, 2), dtype=np.int64)
GOLD = np.array([[0, 10], [1, 11], [2, 12], [3, 13]])


def test_by_hand() -> None:
    # right: (1, 11); wrong target: (0, 11); no counterpart: (7, 17)
    predicted = np.array([[0, 11], [1, 11], [7, 17]])
    assert mapping_metrics(predicted, GOLD) == pytest.approx(
        {"precision": 1 / 3, "recall": 1 / 4, "f1": 2 / 7, "num_predicted": 3}
    )


def test_order_does_not_matter() -> None:
    metrics = mapping_metrics(GOLD[::-1], GOLD)
    assert metrics == {"precision": 1, "recall": 1, "f1": 1, "num_predicted": 4}


def test_a_pair_the_other_way_round_is_wrong() -> None:
    assert mapping_metrics(GOLD[:, ::-1], GOLD)["f1"] == 0


def test_nothing_predicted_scores_zero() -> None:
    expected = {"precision": 0, "recall": 0, "f1": 0, "num_predicted": 0}
    assert mapping_metrics(NONE, GOLD) == expected


@pytest.mark.parametrize("predicted", [GOLD, NONE])
def test_without_gold_links_there_is_nothing_to_say(predicted: np.ndarray) -> None:
    metrics = mapping_metrics(predicted, NONE)
    assert all(np.isnan(metrics[key]) for key in ("precision", "recall", "f1"))
    assert metrics["num_predicted"] == len(predicted)


pair_sets = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1)


@given(pair_sets, pair_sets)
def test_f1_is_the_dice_coefficient(
    left: set[tuple[int, int]], right: set[tuple[int, int]]
) -> None:
    predicted, gold = np.array(sorted(left)), np.array(sorted(right))
    expected = 2 * len(left & right) / (len(left) + len(right))
    metrics = mapping_metrics(predicted, gold)
    assert metrics["f1"] == pytest.approx(expected)
    assert metrics["precision"] == mapping_metrics(gold, predicted)["recall"]
