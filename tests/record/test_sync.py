"""Each run folder is imported into MLflow exactly once, also after an interrupted import."""

from collections.abc import Callable
from pathlib import Path

import pytest

from emea.errors import UserError
from emea.record.mlflow_store import MlflowStore
from emea.record.mlflow_tracker import MlflowTracker
from emea.record.packing import packed_runs
from emea.record.run_record import RunHeader, read_header, read_series
from emea.record.study import add_runs
from emea.record.sync import SyncCounts, find_recorded_runs, find_run_folders, sync

from .run_copies import assert_is_copy
from .study_runs import write_run_folder

MakeFolder = Callable[..., Path]
MakeHeader = Callable[..., RunHeader]


def make_torn_copy(store: MlflowStore, header: RunHeader) -> None:
    """The copy that remains of a request whose response was not awaited."""
    tags = {"emea.run_id": header.run_id}
    store.client.create_run(store.experiment_id(header.experiment), tags=tags)


def test_twice_imports_once(store: MlflowStore, make_folder: MakeFolder) -> None:
    folders = [make_folder("a", run_id="a" * 32), make_folder("b", "KILLED", run_id="b" * 32)]
    assert sync(folders, store) == SyncCounts(imported=2)
    assert sync(folders, store) == SyncCounts(present=2)
    for folder in folders:
        assert_is_copy(store, folder)


def test_live_run_is_already_there(
    store: MlflowStore, tmp_path: Path, make_header: MakeHeader
) -> None:
    tracker = MlflowTracker(store.uri, str(tmp_path / "artifacts"))
    tracker.start(make_header(), tmp_path / "run")
    tracker.log({"hit@1": 0.5}, step=1)
    tracker.finish("FINISHED")
    assert sync([tmp_path / "run"], store) == SyncCounts(present=1)
    assert_is_copy(store, tmp_path / "run")


@pytest.mark.parametrize("method", ["log_batch", "log_artifact", "set_terminated", "set_tag"])
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
    tracker = MlflowTracker(store.uri, str(tmp_path / "artifacts"), flush_seconds=0.0)
    tracker.start(make_header(), folder)
    with monkeypatch.context() as patch:
        patch.setattr(type(store.client), method, fail)
        tracker.log({"hit@1": 0.5}, step=1)
        tracker.log({"hit@1": 0.75}, step=2)
        tracker.finish("FINISHED")
    [torn] = store.find_runs(make_header())
    assert store.complete_copy(make_header(), None) is None
    assert sync([folder], store) == SyncCounts(imported=1)
    assert store.client.get_run(torn.info.run_id).info.lifecycle_stage == "deleted"
    assert_is_copy(store, folder)


def test_leftovers_next_to_a_complete_copy_are_removed(
    store: MlflowStore, make_folder: MakeFolder, make_header: MakeHeader
) -> None:
    folder = make_folder()
    sync([folder], store)
    make_torn_copy(store, make_header())
    assert sync([folder], store) == SyncCounts(present=1)
    assert_is_copy(store, folder)


def test_a_run_that_a_server_made_twice_ends_as_one(
    store: MlflowStore, tmp_path: Path, make_header: MakeHeader
) -> None:
    tracker = MlflowTracker(store.uri, str(tmp_path / "artifacts"))
    tracker.start(make_header(), tmp_path / "run")
    make_torn_copy(store, make_header())
    tracker.finish("FINISHED")
    assert_is_copy(store, tmp_path / "run")


def test_an_interrupted_import_starts_from_scratch(
    store: MlflowStore, make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    folder = make_folder()
    with monkeypatch.context() as patch:
        patch.setattr(type(store.client), "log_artifact", fail)
        assert sync([folder], store) == SyncCounts(failed=1)
    assert sync([folder], store) == SyncCounts(imported=1)
    assert_is_copy(store, folder)


def test_unfinished_runs_wait_unless_asked_for(store: MlflowStore, make_folder: MakeFolder) -> None:
    folder = make_folder(status=None)
    assert sync([folder], store) == SyncCounts(unfinished=1)
    assert store.find_runs(read_header(folder)) == []
    assert sync([folder], store, unfinished=True) == SyncCounts(imported=1)
    [run] = store.find_runs(read_header(folder))
    assert run.info.status == "KILLED"
    assert run.info.end_time == read_series(folder)[-1].time
    assert "no closing record" in run.data.tags["emea.reason"]


def test_run_that_ended_later_replaces_its_unfinished_copy(
    store: MlflowStore, make_folder: MakeFolder
) -> None:
    from emea.record.run_record import RunRecord

    folder = make_folder(status=None)
    sync([folder], store, unfinished=True)
    RunRecord(folder).close("FINISHED")
    assert sync([folder], store) == SyncCounts(imported=1)
    assert_is_copy(store, folder)


def test_a_run_that_went_on_replaces_the_copy_of_its_interruption(
    store: MlflowStore, make_folder: MakeFolder
) -> None:
    from emea.record.run_record import RunRecord

    folder = make_folder(status="KILLED")
    assert sync([folder], store) == SyncCounts(imported=1)
    RunRecord(folder).close("FINISHED")
    assert sync([folder], store) == SyncCounts(imported=1)
    assert_is_copy(store, folder)
    assert sync([folder], store) == SyncCounts(present=1)


def test_an_experiment_that_was_deleted_comes_back(
    store: MlflowStore, make_folder: MakeFolder
) -> None:
    folder = make_folder()
    store.client.delete_experiment(store.experiment_id(read_header(folder).experiment))
    assert sync([folder], store) == SyncCounts(imported=1)


def test_a_damaged_folder_does_not_keep_the_others_out(
    store: MlflowStore, make_folder: MakeFolder
) -> None:
    bad, good = make_folder("bad"), make_folder("good", run_id="b" * 32)
    (bad / "run.json").write_text("{")
    assert sync([bad, good], store) == SyncCounts(imported=1, failed=1)


def test_run_folders_are_found_each_once(tmp_path: Path, make_folder: MakeFolder) -> None:
    first, second = make_folder("2024/a"), make_folder("sweep/0", run_id="b" * 32)
    copies = tmp_path / "outputs" / "mlruns"
    (copies / "1").mkdir(parents=True)
    (copies / "1" / "run.json").write_text("{}")
    roots = [tmp_path / "outputs", tmp_path / "outputs" / "sweep"]
    assert find_run_folders(roots, exclude=copies) == [first, second]
    with pytest.raises(UserError, match="not a folder"):
        find_run_folders([tmp_path / "nowhere"])


def test_counts_are_reported() -> None:
    assert str(SyncCounts(2, 1)) == "imported 2, already there 1, skipped 0"
    expected = "imported 0, already there 0, skipped 3 (1 unfinished, 2 failed)"
    assert str(SyncCounts(unfinished=1, failed=2)) == expected


def test_recorded_runs_are_imported_like_their_folders(
    store: MlflowStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [write_run_folder(tmp_path / "runs" / name, run_id=name * 32) for name in "ab"]
    for folder in folders:
        add_runs(tmp_path / "experiments" / "table1", packed_runs(folder))
    runs = find_recorded_runs([tmp_path / "experiments", tmp_path / "experiments" / "table1"])
    assert [run.name for run in runs] == ["a", "b"]
    assert sync(runs, store) == SyncCounts(imported=2)
    for folder in folders:
        assert_is_copy(store, folder)
    monkeypatch.setattr("emea.record.sync.restore_run", lambda *_: pytest.fail("restored"))
    assert sync(runs, store) == SyncCounts(present=2)
    assert sync(folders, store) == SyncCounts(present=2)
