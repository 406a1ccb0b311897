"""A report of somebody's own runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from emea.errors import DataError
from emea.reporting.all_runs import study
from emea.reporting.store_runs import load_store

from .fabricated import made, rows_of


def test_every_run_has_a_row() -> None:
    run = made("mine", data="mine", seconds={"total": 12.3})
    run = replace(run, header=run.header | {"name": "emea-rrea-mine-1%-strict-s0"})
    bare = {"hit@1": None, "mrr": None, "mr": None}
    unevaluated = replace(run, metrics=run.metrics | {"initial": bare, "final": bare})
    assert "experiment=" not in study([run]).markdown
    rows = rows_of(study([run, unevaluated]).parts[-1])
    place = ["emea-rrea-mine-1%-strict-s0", "mine", "rrea", "paris", "paper", "strict"]
    assert rows[0] == [*place, "0.1234", "0.5000", "0.5000", "5.0", "12"]
    assert rows[1] == [*place, "", "", "", "", "12"]


def test_a_store_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    file = tmp_path / "none.db"
    with pytest.raises(DataError, match="there is no file"):
        load_store(f"sqlite:///{file}")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_address_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"nope\.db cannot be read as an MLflow store, such as sq"):
        load_store("nope.db")
