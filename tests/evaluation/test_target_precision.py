from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from emea.evaluation.target_precision import Acceptance, JudgedAnswer
from emea.matching.beliefs import Beliefs

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
