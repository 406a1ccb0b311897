"""Whole runs, as a person starts them, whose store fails them; then the import of their records."""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emea.record.mlflow_store import MlflowStore
from emea.record.run_record import read_closing, read_series

from ..sweeping import called, going_on
from .run_copies import assert_holds_only
from .serving import free_port, mlflow_server
from .troubles import (
    Silent,
    fill,
    listening,
    locked_database,
    locked_opening,
    slow,
    small_disk,
    wait_until,
)

pytestmark = pytest.mark.slow
PATIENCE = 60.0
START_UP = 60.0
"""Loading torch and MLflow on a machine that has other things to do."""

FEW = "There are only 10 validation links"
"""The beginning of a warning about the small test data."""

ENDURING = ["em.iterations=60", "tracking.flush_seconds=0.1"]


@pytest.fixture
def database(store_template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(store_template, tmp_path / "mlflow.db"))


@contextmanager
def run(folder: Path, *arguments: str) -> Iterator[None]:
    """A run that must end well and in time, and tell its trouble once."""
    began = time.monotonic()
    with going_on(folder, *ENDURING, *arguments) as process:
        yield
        output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    seconds = time.monotonic() - began
    assert seconds - seconds_of_training(folder / "run") < PATIENCE + START_UP
    assert "Traceback" not in output
    warnings = [line for line in log_lines(folder) if "WARNING" in line and FEW not in line]
    assert len(warnings) == 1, warnings
    assert "emea sync" in warnings[0]
    closing = read_closing(folder / "run")
    assert closing is not None and closing.status == "FINISHED"


def log_lines(folder: Path) -> list[str]:
    return (folder / "run" / "run.log").read_text().splitlines()


def seconds_of_training(folder: Path) -> float:
    return read_series(folder)[-1].metrics["run/seconds/train"]


def assert_imported_once(store: MlflowStore, folder: Path) -> None:
    for expected in ("imported 1, already there 0", "imported 0, already there 1"):
        done = called(folder, "-m", "emea", "sync", "run", "--uri", store.uri)
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in done.stdout
    assert_holds_only(store, "emea", [folder / "run"])


def has_points(store: MlflowStore) -> Callable[[], bool]:
    """Whether the store's only run got some."""

    def ask() -> bool:
        runs = store.client.search_runs([store.experiment_id("emea")])
        return any(run.data.metrics for run in runs)

    return ask


def test_away_from_the_beginning(database: Path, tmp_path: Path) -> None:
    with run(tmp_path, f"tracking.uri=http://127.0.0.1:{free_port()}"):
        pass
    assert_imported_once(MlflowStore(f"sqlite:///{database}", str(tmp_path / "files")), tmp_path)


def test_away_from_the_middle_on_and_back(database: Path, tmp_path: Path) -> None:
    uri = f"sqlite:///{database}"
    port = free_port()
    with mlflow_server(uri, tmp_path, port) as server:
        store = MlflowStore(server.address)
        with run(tmp_path, f"tracking.uri={server.address}"):
            wait_until(has_points(store))
            server.signal_all(signal.SIGKILL)
    with mlflow_server(uri, tmp_path, port) as server:
        store = MlflowStore(server.address)
        [torn] = store.client.search_runs([store.experiment_id("emea")])
        assert torn.info.status == "RUNNING"
        assert_imported_once(store, tmp_path)


def test_a_server_that_stops_answering(database: Path, tmp_path: Path) -> None:
    with mlflow_server(f"sqlite:///{database}", tmp_path) as server:
        store = MlflowStore(server.address)
        with run(tmp_path, f"tracking.uri={server.address}"):
            wait_until(has_points(store))
            server.signal_all(signal.SIGSTOP)
        server.signal_all(signal.SIGCONT)
        assert_imported_once(store, tmp_path)


def test_a_server_that_never_answers_the_question_for_earlier_runs(
    database: Path, tmp_path: Path
) -> None:
    with (
        listening(Silent) as address,
        run(
            tmp_path, f"tracking.uri={address}", "skip_recorded=true", "tracking.patience_seconds=5"
        ),
    ):
        pass
    assert_imported_once(MlflowStore(f"sqlite:///{database}", str(tmp_path / "files")), tmp_path)


def test_a_server_that_takes_seconds_for_each_answer(database: Path, tmp_path: Path) -> None:
    with mlflow_server(f"sqlite:///{database}", tmp_path) as server:
        with (
            listening(slow(server.address, seconds=5.0)) as address,
            run(tmp_path, f"tracking.uri={address}"),
        ):
            pass
        assert_imported_once(MlflowStore(server.address), tmp_path)


def test_a_database_locked_for_the_whole_run(database: Path, tmp_path: Path) -> None:
    store = MlflowStore(f"sqlite:///{database}", str(tmp_path / "files"))
    with locked_database(database), run(tmp_path, f"tracking.uri={store.uri}"):
        pass
    assert "database is locked" in "".join(log_lines(tmp_path))
    assert_imported_once(store, tmp_path)


def test_a_store_that_somebody_opens_for_ever(database: Path, tmp_path: Path) -> None:
    store = MlflowStore(f"sqlite:///{database}", str(tmp_path / "files"))
    with locked_opening(database), run(tmp_path, f"tracking.uri={store.uri}"):
        pass
    assert "mlflow.db.lock' could not be acquired" in "".join(log_lines(tmp_path))
    assert_imported_once(store, tmp_path)


def test_a_disk_that_becomes_full(store_template: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        shutil.copy(store_template, disk / "mlflow.db")
        store = MlflowStore(f"sqlite:///{disk}/mlflow.db", str(disk / "files"))
        with run(tmp_path, f"tracking.uri={store.uri}", f"tracking.artifact_root={disk}/files"):
            wait_until(has_points(store))
            filler = fill(disk)
        assert "disk is full" in "".join(log_lines(tmp_path))
        filler.unlink()
        assert_imported_once(store, tmp_path)
