"""A run whose process is gone is interrupted, in its folder and in MLflow."""

from pathlib import Path

import pytest
from filelock import FileLock

from emea.errors import DataError
from emea.record.interrupted import HOST_TAG, close_dead_folder, close_interrupted
from emea.record.mlflow_store import MlflowStore
from emea.record.run_lock import LOCK_FILE
from emea.record.run_record import check_finished, read_closing, read_run_file

from .conftest import MakeFolder, MakeHeader


def test_a_folder_distinguishes_running_from_interrupted(make_folder: MakeFolder) -> None:
    folder = make_folder(status=None)
    with FileLock(folder / LOCK_FILE), pytest.raises(DataError, match="it is still running"):
        check_finished(folder)
    with pytest.raises(DataError, match=r"it was interrupted\. Continue it with: emea run resume="):
        check_finished(folder)


def test_mlflow_shows_a_gone_run_as_killed(
    store: MlflowStore, make_header: MakeHeader, tmp_path: Path
) -> None:
    here, gone, other, imported = (
        store.create_run(make_header(letter * 32), folder)
        for letter, folder in zip("abcd", (*map(tmp_path.joinpath, "abc"), None), strict=True)
    )
    store.client.set_tag(other, HOST_TAG, "another machine")
    (tmp_path / "a").mkdir()
    with FileLock(tmp_path / "a" / LOCK_FILE):
        assert close_interrupted(store.client) == 1
    runs = {run: store.client.get_run(run) for run in (here, gone, other, imported)}
    assert runs[gone].info.status == "KILLED"
    assert "its process ended" in runs[gone].data.tags["mlflow.note.content"]
    assert {runs[run].info.status for run in (here, other, imported)} == {"RUNNING"}
    assert close_interrupted(store.client) == 1  # the first one has ended, too


def test_a_folder_of_a_gone_process_is_closed(make_folder: MakeFolder) -> None:
    folder = make_folder(status=None)
    assert close_dead_folder(folder) is None, "a copy of a folder has no lock"
    with FileLock(folder / LOCK_FILE):
        assert close_dead_folder(folder) is None
        assert read_run_file(folder)["status"] == "RUNNING"
    closing = close_dead_folder(folder)
    assert closing is not None and closing == read_closing(folder)
    assert (closing.status, closing.reason[:11]) == ("KILLED", "interrupted")
    assert close_dead_folder(make_folder("done")) == read_closing(folder.parent / "done")


def test_the_parent_of_a_killed_sweep_is_closed(
    store: MlflowStore, make_header: MakeHeader, make_folder: MakeFolder
) -> None:
    swept = {"sweep": "day/time"}
    folder = make_folder(status=None)
    killed = store.create_run(make_header(tags=swept), folder)
    (folder / LOCK_FILE).touch()
    running = store.create_run(make_header("b" * 32, tags=swept), folder.parent / "other")
    other = folder.parent / "other" / LOCK_FILE
    other.parent.mkdir()
    parent = store.client.get_run(killed).data.tags["mlflow.parentRunId"]
    with FileLock(other):
        assert close_interrupted(store.client) == 1
        assert store.client.get_run(parent).info.status == "RUNNING", "a job is running"
    assert read_run_file(folder)["status"] == "KILLED"
    assert close_interrupted(store.client) == 1
    assert store.client.get_run(running).info.status == "KILLED"
    assert store.client.get_run(parent).info.status == "KILLED"
