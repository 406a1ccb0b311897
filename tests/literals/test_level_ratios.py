"""Log ratios of levels rise with the level."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from emea.literals.level_ratios import isotonic

VALUES = st.floats(-5, 5, allow_subnormal=False)
WEIGHTS = st.floats(1e-3, 1e3)


@given(st.lists(st.tuples(VALUES, WEIGHTS), min_size=1, max_size=20))
def test_rising_values_equal_those_of_scipy(rows: list[tuple[float, float]]) -> None:
    values, weights = np.array(rows).T
    found = isotonic(values, weights)
    assert (np.diff(found) >= 0).all()
    expected = isotonic_regression(values, weights=weights).x
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
