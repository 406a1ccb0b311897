"""Fig. 8 from fabricated runs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emea.errors import DataError
from emea.reporting import figure8
from emea.reporting.figures import write_figure
from emea.reporting.records import RecordedRun, load_records

from .fabricated import made, write_run


def stage(mean: float, conflicts: float, num_entities: int = 100) -> dict[str, Any]:
    """A share ``mean`` of the entities with compatibility 1, the others with 0."""
    high = round(mean * num_entities)
    histogram = [num_entities - high, *[0] * 48, high]
    return {"mean": mean, "conflicts": conflicts, "histogram": histogram, "num_unmatched": 0}


def told(initial: float, final: float, num_entities: int = 100) -> dict[str, Any]:
    stages = {"initial": initial, "final": final}
    section = {name: stage(mean, 1 - mean, num_entities) for name, mean in stages.items()}
    return section | {"oracle": stage(0.9, 0.0, num_entities)}


@pytest.fixture
def runs(tmp_path: Path) -> list[RecordedRun]:
    usual = {"em": "paper", "ratio": 0.05}
    write_run(tmp_path, "a", **usual, compatibility=told(0.2, 0.6))
    write_run(tmp_path, "b", **usual, compatibility=told(0.4, 0.8, 1000), split_seed=1)
    write_run(tmp_path, "c", **usual | {"ratio": 0.3}, compatibility=told(0.7, 0.75))
    write_run(tmp_path, "before", **usual)
    others = [{"protocol": "released"}, {"model": "lightea"}, {"training": "semi"}]
    others += [{"em": "dual"}, {"data": "dbp15k_ja"}, {"rule": "avoid_conflict"}, {"ratio": None}]
    for index, other in enumerate(others):
        write_run(tmp_path, f"other{index}", **usual | other, compatibility=told(0.1, 0.1))
    return load_records(tmp_path)


def test_the_table_holds_what_the_runs_told(runs: list[RecordedRun]) -> None:
    rows = figure8.table_rows(runs)
    assert [row[:-1] for row in rows] == [
        ["5%", "0.300 ± 0.141", "0.700 ± 0.141", "0.700 ± 0.141", "0.300 ± 0.141"],
        ["30%", "0.700 (1 split)", "0.750 (1 split)", "0.300 (1 split)", "0.250 (1 split)"],
        ["oracle", "0.900", "", "0.000", ""],
    ]
    assert [row[-1].count("/runs.jsonl#L") for row in rows] == [2, 1, 0]


def test_of_several_runs_of_a_split_the_latest_counts(runs: list[RecordedRun]) -> None:
    again = {"em": "paper", "ratio": 0.3, "compatibility": told(0.6, 0.95)}
    late, early = (made(name, started=time, **again) for name, time in (("late", 1), ("early", -1)))
    row = figure8.table_rows([late, *runs, early])[1]
    assert row[:3] == ["30%", "0.600 (1 split)", "0.950 (1 split)"]


def test_runs_with_other_settings_are_left_out(runs: list[RecordedRun]) -> None:
    more = {"em": "paper", "ratio": 0.3, "params": {"em.num_candidates": 50}, "started": 9}
    varied = made("varied", compatibility=told(0.1, 0.1), **more)
    assert figure8.table_rows([*runs, varied]) == figure8.table_rows(runs)


def test_without_such_runs_it_says_so(tmp_path: Path) -> None:
    told_nothing = figure8.study([made()], tmp_path)
    assert told_nothing.figure is None
    assert told_nothing.parts[-1] == "not run"


def test_splits_count_alike_whatever_their_size(runs: list[RecordedRun]) -> None:
    of_ratio = figure8.by_ratio(figure8.figure_runs(runs))[0.05]
    shares = figure8.distribution(of_ratio, "initial")
    assert shares[[0, -1]] == pytest.approx([0.7, 0.3])
    assert shares.sum() == pytest.approx(1)


def test_an_outline_keeps_the_shares() -> None:
    shares = np.zeros(50)
    shares[[0, 25]] = 0.5
    height, width = figure8.outline(shares)
    assert (height[0], height[-1]) == (0, 1)
    assert width.max() == pytest.approx(figure8.WIDTH)
    # what is reflected at the end stays inside: both halves hold the same
    assert width[1:14].sum() == pytest.approx(width[14:-1].sum(), rel=1e-3)


def test_draws_both_panels(runs: list[RecordedRun], tmp_path: Path) -> None:
    figure = figure8.draw(runs)
    left, right = figure.axes
    assert [text.get_text() for text in left.get_xticklabels()] == ["5%", "30%", "oracle"]
    assert len(left.collections) == 3
    lines = [line.get_ydata() for line in left.lines]
    assert np.concatenate(lines) == pytest.approx([0.3, 0.7, 0.7, 0.75, 0.9])
    heights = [bar.get_height() for bar in right.patches]
    assert heights == pytest.approx([0.7, 0.3, 0.3, 0.25])
    svg = write_figure(figure, tmp_path / "figure8")[1].read_text()
    for words in ("dbp15k_zh, protocol=strict", "(a) PARIS compatibility", "mean, EMEA"):
        assert words in svg, words


def test_drawn_twice_it_is_the_same(runs: list[RecordedRun], tmp_path: Path) -> None:
    first, second = (write_figure(figure8.draw(runs), tmp_path / name) for name in "ab")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_another_pair_can_be_asked_for(runs: list[RecordedRun]) -> None:
    assert figure8.table_rows(runs, "dbp15k_ja")[0][:2] == ["5%", "0.100 (1 split)"]
    with pytest.raises(DataError, match="data=dbp15k_fr"):
        figure8.draw(runs, "dbp15k_fr")


def test_matplotlib_loads_only_to_draw() -> None:
    code = "import sys, emea.reporting.figure8; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
