"""Earlier runs are found by their fingerprint, in folders and in MLflow."""

import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from emea.record.earlier_runs import (
    LOCK_FILE,
    AlreadyRecordedError,
    earlier_runs,
    refuse_recorded,
)
from emea.record.mlflow_store import MlflowStore
from emea.record.run_record import FINGERPRINT_TAG, RunHeader, read_header
from emea.record.tracker import NoTracker, Tracker

from .conftest import MakeHeader, make_tracker

PRINT = "f" * 64


def finished(tracker: Tracker, header: RunHeader, folder: Path, status: str = "FINISHED") -> Path:
    tracker.start(header, folder)
    (folder / "metrics.json").write_text('{"history": [{"validation": {"mrr": 0.25}}]}')
    tracker.finish(status)
    return folder


@pytest.fixture
def header(make_header: MakeHeader) -> RunHeader:
    return make_header(tags={FINGERPRINT_TAG: PRINT})


def test_a_finished_run_is_found_below_its_root(tmp_path: Path, header: RunHeader) -> None:
    folder = finished(NoTracker(), header, tmp_path / "multirun" / "day" / "0")
    roots = [tmp_path / "nowhere", tmp_path / "multirun"]
    assert earlier_runs(PRINT, roots).finished == folder
    assert earlier_runs("e" * 64, roots).finished is None
    assert earlier_runs(PRINT, []).finished is None


def test_damaged_records_and_runs_without_a_fingerprint_are_passed_over(
    tmp_path: Path, header: RunHeader, make_header: MakeHeader
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.json").write_text("{")
    finished(NoTracker(), make_header(), tmp_path / "b")
    folder = finished(NoTracker(), header, tmp_path / "c")
    assert earlier_runs(PRINT, [tmp_path]).finished == folder


def test_a_record_is_read_once_however_many_jobs_ask(
    tmp_path: Path, header: RunHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished(NoTracker(), header, tmp_path / "a")
    read: list[Path] = []
    monkeypatch.setattr(
        "emea.record.earlier_runs.read_header", lambda path: read.append(path) or read_header(path)
    )
    for _ in range(3):
        assert earlier_runs(PRINT, [tmp_path]).finished == folder
        assert earlier_runs("e" * 64, [tmp_path]).finished is None
    assert read == [folder]


def test_an_unfinished_run_is_continued_unless_a_process_works_in_it(
    tmp_path: Path, header: RunHeader
) -> None:
    folder = finished(NoTracker(), header, tmp_path / "a", "KILLED")
    with FileLock(folder / LOCK_FILE):
        assert earlier_runs(PRINT, [tmp_path]).unfinished is None
    assert earlier_runs(PRINT, [tmp_path]).unfinished == folder


@pytest.mark.parametrize("status", ["FINISHED", "FAILED"])
def test_a_store_finds_what_finished(
    status: str, store: MlflowStore, tmp_path: Path, header: RunHeader
) -> None:
    finished(make_tracker(store.uri), header, tmp_path / "run", status)
    found = store.find_finished(PRINT)
    assert (found is not None) == (status == "FINISHED")
    assert store.find_finished("e" * 64) is None


def test_a_store_looks_in_every_experiment(
    store: MlflowStore, tmp_path: Path, make_header: MakeHeader
) -> None:
    assert store.find_finished(PRINT) is None
    for number, experiment in enumerate(("one", "two")):
        kind = {"experiment": experiment, "tags": {FINGERPRINT_TAG: str(number) * 64}}
        header = make_header(str(number) * 32, **kind)
        finished(make_tracker(store.uri), header, tmp_path / experiment)
    for number in range(2):
        assert store.find_finished(str(number) * 64) is not None


def test_a_running_run_is_not_recorded(
    store: MlflowStore, tmp_path: Path, header: RunHeader
) -> None:
    make_tracker(store.uri).start(header, tmp_path / "run")
    assert make_tracker(store.uri).recorded(PRINT) is None


def test_the_store_is_asked_when_the_folder_is_gone(
    store: MlflowStore, tmp_path: Path, header: RunHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refuse_recorded(header, make_tracker(store.uri))
    folder = finished(make_tracker(store.uri), header, tmp_path / "multirun" / "0")
    with pytest.raises(AlreadyRecordedError, match=str(folder)) as told:
        refuse_recorded(header, make_tracker(store.uri))
    assert told.value.objective == 0.25
    shutil.rmtree(folder)
    run = store.find_finished(PRINT)
    assert run is not None
    name = rf"MLflow run {header.name} \({run.info.run_id}\)"
    with pytest.raises(AlreadyRecordedError, match=name):
        refuse_recorded(header, make_tracker(store.uri))
    refuse_recorded(header, NoTracker())


def test_a_sweep_elsewhere_is_looked_at_too(
    store: MlflowStore, tmp_path: Path, header: RunHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finished(NoTracker(), header, tmp_path / "scratch" / "0")
    assert refuse_recorded(header, NoTracker()) is None
    with pytest.raises(AlreadyRecordedError, match="scratch"):
        refuse_recorded(header, NoTracker(), [tmp_path / "scratch"])
