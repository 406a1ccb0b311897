"""Figure 5 from fabricated runs."""

from pathlib import Path

import pytest

from emea.reporting.figure5 import convergence, study

from .fabricated import history, made, rows_of

SHORT, LONG = ((0.1, 0.2), (0.5, 0.4)), ((0.2, 0.3), (0.6, 0.5), (0.7, 0.6))


def test_means_over_the_runs_that_went_so_far() -> None:
    runs = [made("a", history=history(*SHORT)), made("b", history=history(*LONG))]
    neural, joint = (convergence(runs, part) for part in ("neural", "joint"))
    assert [cell.mean for cell in neural.values()] == pytest.approx([0.15, 0.55, 0.7])
    assert [cell.mean for cell in joint.values()] == pytest.approx([0.25, 0.45, 0.6])
    assert [cell.num_runs for cell in joint.values()] == [2, 2, 1]
    assert convergence([], "joint") == {}


def test_iterations_without_a_joint_distribution_are_left_out() -> None:
    steps = history(*SHORT)
    steps[0]["joint"] = None
    assert list(convergence([made(history=steps)], "joint")) == [1]


def test_rows_and_panels_by_ratio_and_protocol(tmp_path: Path) -> None:
    runs = [made("a", history=history(*SHORT)), made("b", history=history(*LONG), split_seed=1)]
    runs += [made("c", history=history(*LONG), protocol="released", ratio=0.05)]
    shown = study(runs, tmp_path)
    rows = rows_of(shown.parts[-1])
    assert [row[:3] for row in rows[:3]] == [
        ["1%", "released", "neural model"],
        ["1%", "released", "joint distribution"],
        ["1%", "strict", "neural model"],
    ]
    assert set(rows[0][3:]) == {""}
    assert rows[2][3:7] == ["0.150 ± 0.071", "0.550 ± 0.071", "0.700 (1 split)", ""]
    assert rows[5][3:6] == ["0.300 (1 split)", "0.500 (1 split)", "0.600 (1 split)"]
    assert shown.figure is not None
    axes = shown.figure.axes
    assert [axis.get_title() for axis in axes] == [
        "1%, released",
        "1%, strict",
        "5%, released",
        "5%, strict",
    ]
    neural, joint = (line[0].get_ydata().tolist() for line in axes[1].containers)
    assert neural == pytest.approx([0.15, 0.55, 0.7])
    assert joint == pytest.approx([0.25, 0.45, 0.6])
    assert [text.get_text() for text in axes[0].texts] == ["not run"]
    assert {(axis.get_xlabel(), axis.get_ylabel()) for axis in axes} == {("iteration", "Hit@1")}
