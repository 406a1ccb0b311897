"""Reports of a user's own runs show what there are runs of, and nothing else."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emea.errors import DataError, UserError
from emea.results.own_runs import runs_report
from emea.results.recorded_run import RUN_FILES, RecordedRun, _recorded, load_store
from emea.results.report import Report

from ..experiments.report.fabricated import made, texts


def own(name: str, **changes: Any) -> RecordedRun:
    return made(name, "", data="mine", seconds={"total": 12.3}, **changes)


def tables(report: Report) -> dict[str, dict[tuple[str, ...], dict[str, str]]]:
    return {part.title: texts(part.table) for part in report.parts if part.table}


def test_every_run_has_a_row() -> None:
    bare = {"hit@1": None, "mrr": None, "mr": None}
    runs = [own("late", started=2), own("early", initial=bare, final=bare)]
    report = runs_report(runs)
    assert not report.is_experiment
    assert report.note == "2 finished runs, 1 of them with test links."
    found = tables(report)["All runs"]
    place = {"pair": "mine", "model": "rrea", "rule": "paris", "em": "paper", "protocol": "strict"}
    metrics = {"Hit@1 before": "0.1234", "Hit@1": "0.5000", "MRR": "0.5000", "MR": "5.0"}
    assert list(found) == [("early",), ("late",)]
    assert found["late",] == place | metrics | {"seconds": "12"}
    assert found["early",] == place | dict.fromkeys(metrics, "") | {"seconds": "12"}


def test_the_best_run_is_named_for_each_protocol() -> None:
    low = replace(own("low"), metrics=own("low").metrics | {"final": {"hit@1": 0.1}})
    report = runs_report([own("one"), own("two", protocol="released"), low])
    best = report.parts[0]
    assert best.table is not None and best.title == "Best runs"
    rows = [[entry.text for entry in cells] for _, cells in best.table.rows]
    assert [(row[1], row[2], row[4]) for row in rows] == [
        ("released", "two", "1"),
        ("strict", "one", "2"),
    ]


def test_a_store_that_does_not_exist_is_an_error_and_is_not_created(tmp_path: Path) -> None:
    file = tmp_path / "none.db"
    with pytest.raises(DataError, match="does not exist"):
        load_store(f"sqlite:///{file}")
    assert list(tmp_path.iterdir()) == []


def test_an_invalid_address_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"nope\.db cannot be read as an MLflow store, such as sq"):
        load_store("nope.db")


def test_a_run_without_files_is_left_out_and_a_damaged_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlflow.artifacts.download_artifacts", lambda **given: str(tmp_path))
    run: Any = SimpleNamespace(info=SimpleNamespace(run_id="parent"))
    assert _recorded(run, "sqlite:///mlflow.db") is None  # such as the parent of a sweep
    for name in RUN_FILES:
        (tmp_path / name).write_text("{")
    with pytest.raises(UserError, match=r"metrics\.json"):
        _recorded(run, "sqlite:///mlflow.db")
