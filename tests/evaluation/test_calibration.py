"""Bins and their error against loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.evaluation.calibration import (
    answer_calibration,
    expected_calibration_error,
    reliability_bins,
)
from emea.matching.beliefs import Beliefs

predictions = st.lists(
    st.tuples(
        st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1.0])), st.booleans()
    ),
    max_size=30,
)


def looped_error(rows: list[tuple[float, bool]], num_bins: int) -> float:
    error = 0.0
    for index in range(num_bins):
        low, high = index / num_bins, (index + 1) / num_bins
        inside = [(p, right) for p, right in rows if low <= p < high or (p == high == 1)]
        if inside:
            said = sum(p for p, _ in inside) / len(inside)
            came_true = sum(right for _, right in inside) / len(inside)
            error += len(inside) / len(rows) * abs(said - came_true)
    return error


@given(predictions, st.integers(1, 12))
def test_equals_a_loop(rows: list[tuple[float, bool]], num_bins: int) -> None:
    probs = np.array([p for p, _ in rows], dtype=np.float64)
    right = np.array([came_true for _, came_true in rows], dtype=np.bool_)
    bins = reliability_bins(probs, right, num_bins)
    assert sum(row["num_entities"] for row in bins) == len(rows)
    for row in bins:
        assert row["min_prob"] - 1e-9 <= row["mean_prob"] <= row["max_prob"] + 1e-9
        assert row["max_prob"] - row["min_prob"] == pytest.approx(1 / num_bins)
    if rows:
        assert expected_calibration_error(bins) == pytest.approx(looped_error(rows, num_bins))
    else:
        assert math.isnan(expected_calibration_error(bins))


def test_who_is_right_as_often_as_it_says_has_no_error() -> None:
    probs = np.repeat([0.25, 0.75], 100)
    right = np.arange(200) % 4 < np.repeat([1, 3], 100)
    assert expected_calibration_error(reliability_bins(probs, right)) == pytest.approx(0)


def test_the_error_of_one_who_is_too_sure() -> None:
    bins = reliability_bins(np.array([0.95, 0.95, 0.55]), np.array([True, False, True]))
    assert [row["num_entities"] for row in bins] == [1, 2]
    assert expected_calibration_error(bins) == pytest.approx((2 * 0.45 + 0.45) / 3)


def test_an_answer_is_judged_on_its_test_links() -> None:
    targets = torch.tensor([[5], [6], [7], [8]])
    answer = Beliefs(targets, torch.tensor([[0.75], [0.0], [0.25], [1.0]]))
    # 0 right, 1 unmatched though its slot would be right, 2 wrong, 3 not asked for
    calibration = answer_calibration(answer, np.array([[0, 5], [1, 6], [2, 9]]))
    assert (calibration["num_entities"], calibration["num_unmatched"]) == (2, 1)
    assert calibration["ece"] == pytest.approx(0.25)
    assert [row["accuracy"] for row in calibration["bins"]] == [0, 1]


def test_without_test_links_there_is_nothing_to_say() -> None:
    answer = Beliefs(torch.tensor([[5]]), torch.tensor([[0.75]]))
    calibration = answer_calibration(answer, np.zeros((0, 2), dtype=np.int64))
    assert calibration["bins"] == []
    assert math.isnan(calibration["ece"])
