"""What the cells of EM runs say."""

from pathlib import Path
from typing import Any

import pytest

from emea.reporting.em_runs import before_and_after, em_runs, setting
from emea.reporting.records import RecordedRun, load_records

from .fabricated import scores, write_run


def only_run(folder: Path, **changes: Any) -> RecordedRun:
    write_run(folder, "run", **changes)
    return load_records(folder / "records")[0]


def test_before_and_after(tmp_path: Path) -> None:
    assert before_and_after(only_run(tmp_path)) == "0.123 → 0.500"
    assert before_and_after(None) == "no record"


@pytest.mark.parametrize("after", [0.1, 0.1234])
def test_no_lift_is_marked(tmp_path: Path, after: float) -> None:
    run = only_run(tmp_path, final=scores(after))
    assert before_and_after(run) == f"0.123 → {after:.3f} (**no lift**)"


def test_fewer_iterations_and_more_candidates_are_told(tmp_path: Path) -> None:
    run = only_run(tmp_path, params={"em.iterations": 3, "em.num_candidates": 50})
    assert before_and_after(run) == "0.123 → 0.500 (3 iterations, K = 50)"


def test_semi_supervised_settings_differ_by_their_turns(tmp_path: Path) -> None:
    run = only_run(tmp_path, training="semi", params={"training.epochs_per_turn": 1200})
    assert setting(run).training == "semi, 1200 steps a turn"
    supervised = only_run(tmp_path / "other")
    assert setting(supervised).training == "sup"


def test_one_split_of_one_pair_is_compared(tmp_path: Path) -> None:
    write_run(tmp_path, "a")
    write_run(tmp_path, "b", split_seed=1)
    write_run(tmp_path, "c", data="dbp15k_fr")
    write_run(tmp_path, "d", method="neural")
    runs = load_records(tmp_path / "records")
    assert [run.folder.name for run in em_runs(runs)] == ["a"]
