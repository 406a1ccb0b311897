"""Bins and their error against loops."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from emea.evaluation.calibration import (
    Acceptance,
    JudgedAnswer,
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


Judged = list[tuple[int, bool]]
"""Probability in eighths, and whether the answer is right."""

JUDGED = st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=12)


def judged_answer(rows: Judged) -> JudgedAnswer:
    """Entity i is linked to target i; a wrong answer is another one."""
    ids = torch.arange(len(rows))
    wrong = torch.tensor([not right for _, right in rows], dtype=torch.int64)
    probs = torch.tensor([eighths / 8 for eighths, _ in rows]).reshape(-1, 1)
    links = np.stack([np.arange(len(rows))] * 2, axis=1)
    return JudgedAnswer(Beliefs((ids + 100 * wrong).unsqueeze(1), probs), links)


def slow_precisions(rows: Judged) -> dict[int, Fraction]:
    """Precision from each probability on, by a loop."""
    found = {}
    for threshold in {eighths for eighths, _ in rows if eighths}:
        taken = [right for eighths, right in rows if eighths >= threshold]
        found[threshold] = Fraction(sum(taken), len(taken))
    return found


@given(JUDGED, st.integers(0, 20))
def test_the_lowest_threshold_that_reaches_it(rows: Judged, twentieths: int) -> None:
    precisions, target = slow_precisions(rows), Fraction(twentieths, 20)
    enough = [threshold for threshold in precisions if precisions[threshold] >= target]
    found = judged_answer(rows).reaching(twentieths / 20)
    assert (found is None) is (not enough)
    if found is not None:
        assert found.threshold == min(enough) / 8
        assert found.precision == pytest.approx(float(precisions[min(enough)]))
        assert found.num_accepted == sum(eighths >= min(enough) for eighths, _ in rows)
        assert found.num_links == len(rows)


@given(JUDGED)
def test_the_best_there_is(rows: Judged) -> None:
    precisions = slow_precisions(rows)
    found = judged_answer(rows).most_precise()
    assert (found is None) is (not precisions)
    if found is not None:
        best = max(precisions.values())
        assert found.precision == pytest.approx(float(best))
        assert found.threshold == min(at for at in precisions if precisions[at] == best) / 8


def test_precision_can_rise_and_fall_again() -> None:
    rows = [(8, False), (7, True), (6, True), (5, True), (4, False), (3, False)]
    found = judged_answer(rows).reaching(0.75)
    assert found is not None
    assert (found.threshold, found.num_accepted, found.num_right) == (5 / 8, 4, 3)
    assert judged_answer(rows).reaching(0.8) is None


@pytest.mark.parametrize(("num_right", "num_accepted"), [(9, 10), (95, 100), (20, 20), (1, 7)])
def test_the_bound_is_where_luck_has_one_chance_in_twenty(
    num_right: int, num_accepted: int
) -> None:
    low = Acceptance(0.5, 200, num_accepted, num_right).precision_low
    assert binom.sf(num_right - 1, num_accepted, low) == pytest.approx(0.05)


def test_where_nothing_is_accepted_there_is_no_precision() -> None:
    nothing, wrong = Acceptance(0.5, 10, 0, 0), Acceptance(0.5, 10, 4, 0)
    assert np.isnan([nothing.precision, nothing.precision_low]).all()
    assert nothing.recall == wrong.precision == wrong.precision_low == 0
    assert np.isnan(Acceptance(0.5, 0, 0, 0).recall)
