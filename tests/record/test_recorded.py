"""Earlier runs are found by their fingerprint, in run folders."""

from pathlib import Path

import pytest

from emea.record.run_record import FINGERPRINT_TAG, RunHeader
from emea.record.sync import AlreadyRecordedError, finished_run, refuse_recorded
from emea.record.tracker import NoTracker, Tracker

from .conftest import MakeHeader

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
    assert finished_run(PRINT, roots) == folder
    assert finished_run("e" * 64, roots) is None
    assert finished_run(PRINT, []) is None


def test_damaged_records_and_runs_without_a_fingerprint_are_passed_over(
    tmp_path: Path, header: RunHeader, make_header: MakeHeader
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.json").write_text("{")
    finished(NoTracker(), make_header(), tmp_path / "b")
    folder = finished(NoTracker(), header, tmp_path / "c")
    assert finished_run(PRINT, [tmp_path]) == folder


@pytest.mark.parametrize("status", ["FINISHED", "FAILED"])
def test_only_a_finished_run_refuses_another(
    status: str, tmp_path: Path, header: RunHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refuse_recorded(header)
    folder = finished(NoTracker(), header, tmp_path / "multirun" / "0", status)
    if status == "FAILED":
        refuse_recorded(header)
        return
    with pytest.raises(AlreadyRecordedError, match=str(folder)) as told:
        refuse_recorded(header)
    assert told.value.objective == 0.25


def test_a_sweep_elsewhere_is_looked_at_too(
    tmp_path: Path, header: RunHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finished(NoTracker(), header, tmp_path / "scratch" / "0")
    refuse_recorded(header)
    with pytest.raises(AlreadyRecordedError, match="scratch"):
        refuse_recorded(header, [tmp_path / "scratch"])
