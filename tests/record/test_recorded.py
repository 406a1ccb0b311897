"""Earlier runs are found by their fingerprint, in run folders and in the store."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from emea.record.earlier_runs import (
    AlreadyRecordedError,
    EarlierRuns,
    earlier_runs,
    refuse_recorded,
)
from emea.record.mlflow_store import MlflowStore
from emea.record.run_record import FINGERPRINT_TAG, LOCK_FILE, RunHeader
from emea.record.sync import sync
from emea.record.tracker import NoTracker, Tracker

from .conftest import MakeHeader, make_tracker

PRINT = "f" * 64


def finished(
    tracker: Tracker, header: RunHeader, folder: Path, status: str = "FINISHED"
) -> Path:
    tracker.start(header, folder)
    (folder / "metrics.json").write_text('{"history": [{"validation": {"mrr": 0.25}}]}')
    tracker.finish(status)
    return folder


@pytest.fixture
def header(make_header: MakeHeader) -> RunHeader:
    return make_header(tags={FINGERPRINT_TAG: PRINT})


def test_a_finished_run_is_found_below_its_root(
    tmp_path: Path, header: RunHeader
) -> None:
    folder = finished(NoTracker(), header, tmp_path / "multirun" / "day" / "0")
    roots = [tmp_path / "nowhere", tmp_path / "multirun"]
    assert earlier_runs(PRINT, roots) == EarlierRuns(finished=folder)
    assert earlier_runs("e" * 64, roots) == EarlierRuns()
    assert earlier_runs(PRINT, []) == EarlierRuns()


def test_damaged_records_and_runs_without_a_fingerprint_are_passed_over(
    tmp_path: Path, header: RunHeader, make_header: MakeHeader
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.json").write_text("{")
    finished(NoTracker(), make_header(), tmp_path / "b")
    folder = finished(NoTracker(), header, tmp_path / "c")
    assert earlier_runs(PRINT, [tmp_path]).finished == folder


@pytest.mark.parametrize("status", ["FINISHED", "FAILED"])
def test_only_a_finished_run_refuses_another(
    status: str, tmp_path: Path, header: RunHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    new = tmp_path / "new"
    assert refuse_recorded(header, new, NoTracker()) is None
    folder = finished(NoTracker(), header, tmp_path / "multirun" / "0", status)
    if status == "FAILED":
        assert refuse_recorded(header, new, NoTracker()) is None
        return
    with pytest.raises(AlreadyRecordedError, match=str(folder)) as told:
        refuse_recorded(header, new, NoTracker())
    assert told.value.objective == 0.25


def test_a_sweep_elsewhere_is_looked_at_too(
    tmp_path: Path, header: RunHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finished(NoTracker(), header, tmp_path / "scratch" / "0")
    new = tmp_path / "new"
    assert refuse_recorded(header, new, NoTracker()) is None
    with pytest.raises(AlreadyRecordedError, match="scratch"):
        refuse_recorded(header, new, NoTracker(), [tmp_path / "scratch"])


def test_the_store_is_asked_when_the_folder_is_gone(
    tmp_path: Path,
    header: RunHeader,
    store: MlflowStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = finished(NoTracker(), header, tmp_path / "multirun" / "0")
    sync([folder], store)
    shutil.move(folder, tmp_path / "archive")
    with pytest.raises(AlreadyRecordedError, match=f"MLflow run {header.name}") as told:
        refuse_recorded(header, tmp_path / "new", make_tracker(store.uri))
    assert told.value.objective == 0.25
    # a run with another fingerprint is not recorded
    other = replace(header, tags={FINGERPRINT_TAG: "e" * 64})
    assert refuse_recorded(other, tmp_path / "new", make_tracker(store.uri)) is None


def test_a_stored_run_without_its_files_is_still_recorded(
    tmp_path: Path, header: RunHeader, store: MlflowStore
) -> None:
    sync([finished(NoTracker(), header, tmp_path / "run")], store)
    for copy in (tmp_path / "store").rglob("metrics.json"):
        copy.unlink()
    stored = make_tracker(store.uri).recorded(PRINT, tmp_path / "new")
    assert stored is not None and stored.metrics == {}


@pytest.mark.parametrize("status", ["FAILED", "KILLED"])
def test_an_interrupted_run_with_a_checkpoint_is_continued(
    status: str, tmp_path: Path, header: RunHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finished(NoTracker(), header, tmp_path / "multirun" / "without_checkpoint", status)
    folder = finished(NoTracker(), header, tmp_path / "multirun" / "z", status)
    (folder / "checkpoint.safetensors").write_bytes(b"1")
    assert refuse_recorded(header, tmp_path / "new", NoTracker()) == folder
    # a process works in it
    with FileLock(folder / LOCK_FILE):
        assert refuse_recorded(header, tmp_path / "new", NoTracker()) is None
