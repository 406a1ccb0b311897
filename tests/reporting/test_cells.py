"""Cells: means over splits, and what they say of themselves."""

import pytest

from emea.reporting.cells import Cell, over_splits, shown, signed


def test_mean_and_spread() -> None:
    found = over_splits([0.4, 0.5])
    assert found is not None
    assert (found.mean, found.num_runs) == (pytest.approx(0.45), 2)
    assert found.spread == pytest.approx(0.0707, abs=1e-4)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "no record"),
        (over_splits([]), "no record"),
        (over_splits([None, None]), "n/a"),
        (Cell(0.5, 0.0, 1), "0.500 (1 split)"),
        (Cell(0.5, 0.01, 2), "0.500 ± 0.010 (2 splits)"),
        (Cell(0.5, 0.01, 3), "0.500 ± 0.010"),
    ],
)
def test_a_cell_says_what_it_rests_on(value: Cell | None, text: str) -> None:
    assert shown(value, splits=3) == text


def test_differences_have_a_sign_or_are_left_out() -> None:
    assert signed(0.5, 0.4) == "+0.100"
    assert signed(0.25, 0.5, "{:.1f}") == "-0.2"
    assert signed(None, 0.4) == signed(0.4, None) == ""
