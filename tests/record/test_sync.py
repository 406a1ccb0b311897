"""Each run folder is imported into MLflow exactly once, also after an interrupted import."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from filelock import FileLock

from emea.errors import UserError
from emea.record.interrupted import close_dead_folder
from emea.record.mlflow_store import MlflowStore
from emea.record.run_record import (
    LOCK_FILE,
    SERIES_FILE,
    close_record,
    read_closing,
    read_header,
    read_run_file,
)
from emea.record.sync import find_run_folders, sync

from .conftest import MakeFolder, MakeHeader, make_tracker
from .run_copies import assert_is_copy


def test_twice_imports_once(store: MlflowStore, make_folder: MakeFolder) -> None:
    folders = [
        make_folder("a", run_id="a" * 32),
        make_folder("b", "KILLED", run_id="b" * 32),
    ]
    assert sync(folders, store) == Counter(imported=2)
    assert sync(folders, store) == Counter(present=2)
    for folder in folders:
        assert_is_copy(store, folder)


def test_live_run_is_already_there(
    store: MlflowStore, tmp_path: Path, make_header: MakeHeader
) -> None:
    tracker = make_tracker(store.uri)
    tracker.start(make_header(), tmp_path / "run")
    tracker.log({"hit@1": 0.5}, step=1)
    tracker.finish("FINISHED")
    assert sync([tmp_path / "run"], store) == Counter(present=1)
    assert_is_copy(store, tmp_path / "run")


@pytest.mark.parametrize(
    "method", ["log_batch", "log_artifact", "set_terminated", "set_tag"]
)
def test_run_whose_store_broke_is_replaced(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("store away")

    folder = tmp_path / "run"
    tracker = make_tracker(store.uri, flush_seconds=0.0)
    tracker.start(make_header(), folder)
    with monkeypatch.context() as patch:
        patch.setattr(type(store.client), method, fail)
        tracker.log({"hit@1": 0.5}, step=1)
        tracker.log({"hit@1": 0.75}, step=2)
        tracker.finish("FINISHED")
    [torn] = store.find_runs(make_header())
    closing = read_closing(folder)
    assert closing is not None and not store.has_copy(make_header(), closing)
    assert sync([folder], store) == Counter(imported=1)
    assert store.client.get_run(torn.info.run_id).info.lifecycle_stage == "deleted"
    assert_is_copy(store, folder)


def test_a_run_that_a_server_made_twice_ends_as_one(
    store: MlflowStore, tmp_path: Path, make_header: MakeHeader
) -> None:
    tracker = make_tracker(store.uri)
    tracker.start(make_header(), tmp_path / "run")
    # as if a slow server had carried out a repeated request twice
    tags = {"emea.run_id": make_header().run_id}
    store.client.create_run(store.experiment_id(make_header().experiment), tags=tags)
    tracker.finish("FINISHED")
    assert_is_copy(store, tmp_path / "run")


def test_unfinished_runs_wait(store: MlflowStore, make_folder: MakeFolder) -> None:
    folder = make_folder(status=None)
    assert sync([folder], store) == Counter(unfinished=1)
    assert store.find_runs(read_header(folder)) == []


def test_a_run_that_went_on_replaces_the_copy_of_its_interruption(
    store: MlflowStore, make_folder: MakeFolder
) -> None:
    folder = make_folder(status="KILLED")
    assert sync([folder], store) == Counter(imported=1)
    close_record(folder, "FINISHED")
    assert sync([folder], store) == Counter(imported=1)
    assert_is_copy(store, folder)
    assert sync([folder], store) == Counter(present=1)


def test_a_damaged_folder_does_not_keep_the_others_out(
    store: MlflowStore, make_folder: MakeFolder
) -> None:
    bad, good = make_folder("bad"), make_folder("good", run_id="b" * 32)
    (bad / "run.json").write_text("{")
    assert sync([bad, good], store) == Counter(imported=1, failed=1)


def test_a_series_that_was_cut_at_a_line_is_not_imported(
    store: MlflowStore, make_folder: MakeFolder, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_folder("cut")
    series = folder / SERIES_FILE
    lines = series.read_bytes().splitlines(keepends=True)
    series.write_bytes(b"".join([*lines, *lines]))
    close_record(folder, "FINISHED")
    series.write_bytes(b"".join(lines))
    assert lines and sync([folder], store)["failed"] == 1
    assert f"the run wrote {2 * len(lines)} lines, but it has {len(lines)}" in (
        caplog.text
    )


def test_run_folders_are_found_each_once(
    tmp_path: Path, make_folder: MakeFolder
) -> None:
    first, second = make_folder("2024/a"), make_folder("sweep/0", run_id="b" * 32)
    roots = [tmp_path / "outputs", tmp_path / "outputs" / "sweep"]
    assert find_run_folders(roots) == [first, second]
    with pytest.raises(UserError, match="not a folder"):
        find_run_folders([tmp_path / "nowhere"])


def test_copies_in_stores_are_not_imported(
    store: MlflowStore, tmp_path: Path, make_folder: MakeFolder
) -> None:
    folder = make_folder()
    sync([folder], store)
    assert list((tmp_path / "store").rglob("run.json")), "the store has copies"
    shutil.copytree(folder, tmp_path / "mlruns" / "old")
    shutil.copytree(folder, tmp_path / "elsewhere" / "1" / ("c" * 32) / "artifacts")
    assert find_run_folders([tmp_path]) == [folder]
    assert find_run_folders([tmp_path / "elsewhere", tmp_path / "store"]) == []


def test_an_older_copy_does_not_change_a_finished_run(
    store: MlflowStore, make_folder: MakeFolder
) -> None:
    folder = make_folder(status="KILLED")
    copy = Path(shutil.copytree(folder, folder.parent / "copy"))
    close_record(folder, "FINISHED")
    assert sync([folder], store) == Counter(imported=1)
    for _ in range(2):
        assert sync([copy, folder], store) == Counter(present=2)
        assert_is_copy(store, folder)


def test_repeating_an_import_of_copies_imports_nothing(
    store: MlflowStore, make_folder: MakeFolder
) -> None:
    folder = make_folder(status="KILLED")
    copy = Path(shutil.copytree(folder, folder.parent / "copy"))
    first = read_closing(copy)
    assert first is not None
    end_time = first.end_time + 1  # a fast machine closes both in the same millisecond
    close_record(folder, "FAILED", "again", end_time=end_time)
    assert sync([copy, folder], store) == Counter(imported=2)
    assert sync([copy, folder], store) == Counter(present=2)
    [run] = store.find_runs(read_header(folder))
    assert (run.info.status, run.info.end_time) == ("FAILED", end_time)


def test_a_folder_whose_process_is_gone_is_closed(make_folder: MakeFolder) -> None:
    folder = make_folder(status=None)
    assert close_dead_folder(folder) is None, "a copy of a folder has no lock"
    with FileLock(folder / LOCK_FILE):
        assert close_dead_folder(folder) is None
        assert read_run_file(folder)["status"] == "RUNNING"
    closing = close_dead_folder(folder)
    assert closing is not None and closing == read_closing(folder)
    assert (closing.status, closing.reason[:11]) == ("KILLED", "interrupted")
    assert close_dead_folder(make_folder("done")) == read_closing(
        folder.parent / "done"
    )
