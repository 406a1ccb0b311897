"""A store that is away, locked, full or slow holds no run up for longer than agreed."""

import logging
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from emea.cli.main import main
from emea.record.mlflow_store import MlflowStore
from emea.record.mlflow_tracker import MlflowTracker
from emea.record.run_record import FINGERPRINT_TAG, RunHeader, read_closing, read_series

from .run_copies import assert_holds_only
from .serving import free_port, mlflow_server
from .troubles import (
    Busy,
    Dripping,
    Server,
    Silent,
    fill,
    listening,
    locked_database,
    locked_opening,
    slow,
    small_disk,
)

PATIENCE = 0.5
PATIENT = 1.5  # where some calls are to succeed before
SLACK = 2.0  # a busy machine is no failure
STEPS = range(5)

MakeHeader = Callable[..., RunHeader]
Lock = Callable[[Path], AbstractContextManager[None]]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Every warning since, of whomever."""
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds + SLACK


def database_of(store: MlflowStore) -> Path:
    return Path(store.uri.removeprefix("sqlite:///"))


def begin(
    uri: str, header: RunHeader, folder: Path, files: Path | None = None, patience: float = PATIENCE
) -> MlflowTracker:
    artifacts = str(files or folder.parent / "files")
    tracker = MlflowTracker(uri, artifacts, flush_seconds=0.0, patience_seconds=patience)
    tracker.start(header, folder)
    return tracker


def measure(tracker: MlflowTracker, folder: Path) -> None:
    """The rest of a run."""
    for step in STEPS:
        tracker.log({"hit@1": step / 7, "loss": -step}, step)
    (folder / "metrics.json").write_text("{}")
    tracker.finish("FINISHED")
    assert [point.step for point in read_series(folder)] == list(STEPS)
    closing = read_closing(folder)
    assert closing is not None and closing.status == "FINISHED"


def assert_told_once(messages: list[str], folder: Path, uri: str) -> None:
    [message] = messages
    assert f"`emea sync {folder} --uri {uri}`" in message


def assert_imported_once(
    store: MlflowStore, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    caplog.set_level(logging.INFO)
    for _ in range(2):
        assert main(["sync", str(folder), "--uri", store.uri]) == 0
    counts = [record.getMessage() for record in caplog.records]
    assert counts == [
        "imported 1, already there 0, skipped 0",
        "imported 0, already there 1, skipped 0",
    ]
    assert_holds_only(store, "tests", [folder])


@pytest.mark.parametrize("kind", [None, Silent, Dripping, Busy])
def test_a_server_that_is_away_or_slow(
    kind: type[Server] | None,
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    monkeypatch: pytest.MonkeyPatch,
    told: Callable[[], list[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = tmp_path / "run"

    def run(uri: str) -> None:
        with at_most(PATIENCE):
            measure(begin(uri, make_header(), folder), folder)
        assert_told_once(told(), folder, uri)

    if kind is None:
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")  # they would take seconds
        run(f"http://127.0.0.1:{free_port()}")
    else:
        with listening(kind) as uri:
            run(uri)
    assert_imported_once(store, folder, caplog)


@pytest.mark.parametrize("lock", [locked_database, locked_opening])
def test_a_store_locked_for_the_whole_run(
    lock: Lock,
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    told: Callable[[], list[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = tmp_path / "run"
    with lock(database_of(store)):
        with at_most(PATIENCE):
            measure(begin(store.uri, make_header(), folder), folder)
        assert_told_once(told(), folder, store.uri)
    assert_imported_once(store, folder, caplog)


def test_a_store_locked_from_its_middle_on_does_not_slow_the_run_and_is_left_at_its_end(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    told: Callable[[], list[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = tmp_path / "run"
    tracker = begin(store.uri, make_header(), folder, patience=PATIENT)
    with locked_database(database_of(store)):
        with at_most(PATIENT):
            measure(tracker, folder)
        assert_told_once(told(), folder, store.uri)
    [torn] = store.find_runs(make_header())
    assert torn.info.status == "RUNNING"
    assert_imported_once(store, folder, caplog)


def test_a_store_that_is_free_again_in_time_gets_everything(
    store: MlflowStore, tmp_path: Path, make_header: MakeHeader, told: Callable[[], list[str]]
) -> None:
    folder = tmp_path / "run"
    with locked_database(database_of(store), seconds=0.5):
        measure(begin(store.uri, make_header(), folder, patience=60.0), folder)
    assert told() == []
    assert_holds_only(store, "tests", [folder])


def test_a_folder_for_files_that_takes_none(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    told: Callable[[], list[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder, files = tmp_path / "run", tmp_path / "files"
    files.write_text("no folder")
    measure(begin(store.uri, make_header(), folder, files, patience=60.0), folder)
    assert_told_once(told(), folder, store.uri)
    assert "(NotADirectoryError: " in told()[0]
    files.unlink()
    assert_imported_once(store, folder, caplog)


@pytest.mark.parametrize("is_full_at", ["start", "end"])
def test_a_full_disk(
    is_full_at: str,
    store_template: Path,
    tmp_path: Path,
    make_header: MakeHeader,
    told: Callable[[], list[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = tmp_path / "run"
    with small_disk(tmp_path / "disk", megabytes=4) as disk:
        shutil.copy(store_template, disk / "mlflow.db")
        store = MlflowStore(f"sqlite:///{disk}/mlflow.db", str(disk / "files"))
        if is_full_at == "start":
            filler = fill(disk)
        tracker = begin(store.uri, make_header(), folder, disk / "files", patience=60.0)
        if is_full_at == "end":
            filler = fill(disk)
        measure(tracker, folder)
        assert_told_once(told(), folder, store.uri)
        assert "(OperationalError: database or disk is full)" in told()[0]
        filler.unlink()
        assert_imported_once(store, folder, caplog)


def test_the_question_for_earlier_runs_is_part_of_the_time(
    tmp_path: Path, make_header: MakeHeader, told: Callable[[], list[str]]
) -> None:
    folder = tmp_path / "run"
    with listening(Silent) as uri, at_most(PATIENCE):
        tracker = MlflowTracker(uri, flush_seconds=0.0, patience_seconds=PATIENCE)
        assert tracker.recorded("f") is None
        tracker.start(make_header(tags={FINGERPRINT_TAG: "f"}), folder)
        measure(tracker, folder)
    [message] = told()
    assert "cannot be searched" in message


@pytest.mark.slow
def test_a_server_that_is_asked_twice_for_a_run_ends_with_one(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    monkeypatch: pytest.MonkeyPatch,
    told: Callable[[], list[str]],
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    folder = tmp_path / "run"
    with mlflow_server(store.uri, tmp_path) as server:
        behind = MlflowStore(server.address)
        with listening(slow(server.address, 10.0, where="runs/create", times=1)) as address:
            tracker = begin(address, make_header(), folder, patience=60.0)
            assert len(behind.find_runs(make_header())) == 2
            measure(tracker, folder)
        assert told() == []
        assert_holds_only(behind, "tests", [folder])
