"""Conflicting predictions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emea.evaluation.compatibility import conflict_share


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_equals_a_count(targets: list[int]) -> None:
    conflicting = sum(targets.count(target) > 1 for target in targets)
    assert conflict_share(np.array(targets)) == pytest.approx(conflicting / len(targets))


def test_of_nothing_is_none() -> None:
    assert conflict_share(np.empty(0, dtype=np.int64)) == 0.0


def test_who_has_no_prediction_takes_no_part() -> None:
    assert conflict_share(np.array([-1, -1, 3, 3, 4, 5])) == 0.5
    assert conflict_share(np.array([-1, -1])) == 0.0
