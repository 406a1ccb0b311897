"""A store that is away, locked or slow delays no run for longer than agreed, and fails none."""

import logging
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from emea.cli.main import main
from emea.record.mlflow_store import MlflowStore
from emea.record.mlflow_tracker import MlflowTracker
from emea.record.run_record import read_closing, read_series
from emea.record.ui import HOST

from ..sweeping import called, going_on
from .conftest import MakeHeader, make_tracker
from .run_copies import assert_holds_only
from .serving import free_port, mlflow_server

PATIENCE = 0.5
SLACK = 2.0  # a busy machine is not a failure
STEPS = range(5)

HOLD_DATABASE = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1])
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


@contextmanager
def locked(store: MlflowStore, seconds: float = 3600.0) -> Iterator[None]:
    """Another process writes to the database and does not come to an end."""
    database = store.uri.removeprefix("sqlite:///")
    command = [sys.executable, "-c", HOLD_DATABASE, database, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield
        finally:
            process.kill()


class Dripping(BaseHTTPRequestHandler):
    """Always seems to be about to answer, so that no timeout of a single read ends the call."""

    over = Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while not self.over.wait(0.1):
            self.wfile.write(b" ")

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def dripping_server() -> Iterator[str]:
    Dripping.over = Event()
    with ThreadingHTTPServer((HOST, 0), Dripping) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{server.server_address[1]}"
        Dripping.over.set()
        server.shutdown()


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds + SLACK


def finish(tracker: MlflowTracker, folder: Path) -> None:
    """The rest of a run, whose records must be in the folder whatever the store does."""
    for step in STEPS:
        tracker.log({"hit@1": step / 7, "loss": -step}, step)
    (folder / "metrics.json").write_text("{}")
    tracker.finish("FINISHED")
    assert [point.step for point in read_series(folder)] == list(STEPS)
    closing = read_closing(folder)
    assert closing is not None and closing.status == "FINISHED"


def assert_warned_then_imported_once(
    store: MlflowStore, folder: Path, uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    [message] = [
        one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING
    ]
    assert f"`emea sync {folder} --uri {uri}`" in message
    caplog.clear()
    caplog.set_level(logging.INFO)
    for _ in range(2):
        assert main(["sync", str(folder), "--uri", store.uri]) == 0
    assert [record.getMessage() for record in caplog.records] == [
        "imported 1, already there 0, unfinished 0, failed 0",
        "imported 0, already there 1, unfinished 0, failed 0",
    ]
    assert_holds_only(store, "tests", [folder])


@pytest.mark.parametrize("kind", ["away", "dripping"])
def test_a_server_that_does_not_answer(
    kind: str,
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0"
    )  # they would take seconds
    with dripping_server() as dripping:
        uri = dripping if kind == "dripping" else f"http://{HOST}:{free_port()}"
        tracker = make_tracker(uri, 0.0, PATIENCE)
        with at_most(PATIENCE):
            tracker.start(make_header(), tmp_path / "run")
            finish(tracker, tmp_path / "run")
    assert_warned_then_imported_once(store, tmp_path / "run", uri, caplog)


def test_a_store_locked_for_the_whole_run(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tracker = make_tracker(store.uri, 0.0, PATIENCE)
    with locked(store), at_most(PATIENCE):
        tracker.start(make_header(), tmp_path / "run")
        finish(tracker, tmp_path / "run")
    assert_warned_then_imported_once(store, tmp_path / "run", store.uri, caplog)


def test_a_store_locked_during_a_run_does_not_slow_it(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tracker = make_tracker(store.uri, 0.0, patience_seconds=1.5)
    tracker.start(make_header(), tmp_path / "run")
    with locked(store), at_most(1.5):
        finish(tracker, tmp_path / "run")
    [torn] = store.find_runs(make_header())
    assert torn.info.status == "RUNNING"
    assert_warned_then_imported_once(store, tmp_path / "run", store.uri, caplog)


def test_a_store_that_is_free_again_in_time_gets_everything(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tracker = make_tracker(store.uri, 0.0)
    with locked(store, seconds=0.5):
        tracker.start(make_header(), tmp_path / "run")
        finish(tracker, tmp_path / "run")
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert_holds_only(store, "tests", [tmp_path / "run"])


def test_a_file_in_place_of_the_folder_for_files(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = tmp_path / "files"
    files.write_text("not a folder")
    tracker = make_tracker(store.uri, 0.0, files=str(files))
    tracker.start(make_header(), tmp_path / "run")
    finish(tracker, tmp_path / "run")
    assert "(NotADirectoryError: " in caplog.text
    files.unlink()
    assert_warned_then_imported_once(store, tmp_path / "run", store.uri, caplog)


@pytest.mark.slow
def test_a_server_that_is_killed_during_a_run_and_comes_back(
    store_template: Path, tmp_path: Path
) -> None:
    uri = f"sqlite:///{shutil.copy(store_template, tmp_path / 'mlflow.db')}"
    port = free_port()
    with mlflow_server(uri, tmp_path, port) as server:
        store = MlflowStore(server.address)
        with going_on(
            tmp_path, "em.iterations=600", f"tracking.uri={server.address}"
        ) as process:
            deadline = time.monotonic() + 120
            while not any(run.data.metrics for run in runs(store)):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            server.signal_all(signal.SIGKILL)
            output, _ = process.communicate(timeout=600)
    assert process.returncode == 0 and "Traceback" not in output, output
    log = (tmp_path / "run" / "run.log").read_text()
    assert log.count("emea sync") == 1
    with mlflow_server(uri, tmp_path, port) as server:
        store = MlflowStore(server.address)
        assert [run.info.status for run in runs(store)] == ["RUNNING"]
        for expected in ("imported 1, already there 0", "imported 0, already there 1"):
            done = called(
                tmp_path, "-m", "emea", "sync", "run", "--uri", server.address
            )
            assert expected in done.stdout, done.stderr
        assert_holds_only(store, "emea", [tmp_path / "run"])


def runs(store: MlflowStore) -> list[object]:
    return list(store.client.search_runs([store.experiment_id("emea")]))
