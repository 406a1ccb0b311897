"""Curves and their panels."""

import math

import numpy as np
import pytest

from emea.reporting.cells import Cell
from emea.reporting.curves import STYLES, Curve, draw, panels


def test_places_left_over_are_blank() -> None:
    figure, axes = panels(["a", "b", "c"], "of a pair")
    assert [axis.get_title() for axis in axes] == ["a", "b", "c"]
    assert [axis.axison for axis in figure.axes] == [True, True, True, False]
    assert figure.get_suptitle() == "of a pair; bars: standard deviation over splits"


def test_places_without_a_run_are_left_out() -> None:
    _, [axis] = panels(["a"], "of a pair", columns=1)
    points = {0.3: Cell(0.9, 0.1, 3), 0.01: Cell(0.5, 0.0, 1), 0.1: Cell(None, 0.0, 1)}
    draw(axis, [Curve("EMEA", points), Curve("none", {})], (0.01, 0.1, 0.2, 0.3), list("abcd"))
    line = axis.containers[0][0]
    assert line.get_xdata().tolist() == [0, 1, 3]
    heights = line.get_ydata()
    assert heights[[0, 2]].tolist() == [0.5, 0.9] and math.isnan(heights[1])
    bars = axis.containers[0][2][0].get_segments()
    assert np.ptp(bars[-1][:, 1]) == pytest.approx(0.2)
    assert [text.get_text() for text in axis.get_xticklabels()] == list("abcd")
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["EMEA", "none (not run)"]


def test_nothing_run_is_said_in_the_panel() -> None:
    _, [axis] = panels(["a"], "of a pair", columns=1)
    draw(axis, [Curve("EMEA", {})], (0.01,), ["1%"])
    assert [text.get_text() for text in axis.texts] == ["not run"]
    assert axis.get_legend() is None


def test_no_two_curves_look_alike() -> None:
    assert len(set(STYLES)) == len(STYLES)
    assert len({(line, marker) for _, line, marker in STYLES}) == len(STYLES)
