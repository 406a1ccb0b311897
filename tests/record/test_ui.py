"""The UI serves the store on the loopback address only."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from emea.errors import UserError
from emea.record import ui
from emea.record.mlflow_store import MlflowStore
from emea.record.sync import sync
from emea.record.ui import (
    HOST,
    results_address,
    serve_ui,
    server_command,
    studies,
    study_address,
)

from .serving import LOG_FILE, ask, free_port, served


@pytest.fixture
def server(store: MlflowStore, tmp_path: Path) -> Iterator[str]:
    with served(store.uri, tmp_path) as address:
        yield address
    # Stopping the command stops the server.
    with pytest.raises(OSError):
        for _ in range(20):
            ask(f"{address}/health")
            time.sleep(0.5)


@pytest.mark.slow
def test_server_lists_runs_and_shows_files(
    server: str, store: MlflowStore, make_folder: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_folder()
    assert sync([folder], store).imported == 1
    experiment = store.experiment_id("tests")
    answer = ask(f"{server}/api/2.0/mlflow/runs/search", {"experiment_ids": [experiment]})
    [run] = json.loads(answer)["runs"]
    metrics = {item["key"]: item["value"] for item in run["data"]["metrics"]}
    assert metrics["hit_at_1"] == 0.5
    run_id = run["info"]["run_id"]
    listed = json.loads(ask(f"{server}/api/2.0/mlflow/artifacts/list?run_id={run_id}"))
    assert "metrics.json" in {item["path"] for item in listed["files"]}
    content = ask(f"{server}/get-artifact?path=metrics.json&run_id={run_id}")
    assert content == (folder / "metrics.json").read_bytes()
    assert b"<html" in ask(f"{server}/").lower()
    deadline = time.monotonic() + 10
    while (ready := f"Open {server}") not in (tmp_path / LOG_FILE).read_text():
        assert time.monotonic() < deadline, ready
        time.sleep(0.1)


def test_command_is_for_this_machine_only() -> None:
    command = server_command("sqlite:////srv/a.db", "mlruns", 5001)
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--workers") + 1] == "1"
    assert command[command.index("--port") + 1] == "5001"
    # otherwise uvicorn prints a traceback when it is interrupted
    assert "--lifespan off" in command[command.index("--uvicorn-opts") + 1]


def test_the_addresses_of_studies_with_runs_are_printed(
    store: MlflowStore, make_folder: Callable[..., Path]
) -> None:
    assert studies(store.client) == {}
    sync([make_folder()], store)
    experiment = store.experiment_id("tests")
    assert studies(store.client) == {"tests": experiment}
    address = f"http://x/#/experiments/{experiment}/runs?workflowType=machine_learning"
    assert study_address("http://x", experiment) == f"{address}&viewStateShareKey=emea"


@contextmanager
def answering(delay: float) -> Iterator[int]:
    """A port at which a server answers after some seconds."""
    port = free_port()

    def serve() -> None:
        time.sleep(delay)
        with HTTPServer((HOST, port), Healthy) as server:
            server.handle_request()

    thread = Thread(target=serve)
    thread.start()
    yield port
    thread.join()


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_it_prints_the_address_when_the_server_answers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(ui, "REPORT_SECONDS", 0.1)
    with answering(0.3) as port:
        assert not capsys.readouterr().out
        ui.print_when_ready(port, os.getppid(), "http://runs")
    *waiting, last = capsys.readouterr().out.splitlines()
    assert last == "Open http://runs"
    assert all(line.startswith("Still waiting for the server") for line in waiting)
    ui.print_when_ready(port, -1, "http://runs")  # the server has ended
    assert not capsys.readouterr().out


def test_the_latest_study_is_opened(
    store: MlflowStore,
    make_folder: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="emea")
    commands: list[list[str]] = []
    monkeypatch.setattr(ui.subprocess, "Popen", commands.append)
    monkeypatch.setattr(ui.os, "execv", lambda program, command: commands.append(command))
    monkeypatch.setenv("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "true")
    monkeypatch.setenv("MLFLOW_LOGGING_LEVEL", "WARNING")
    port = free_port()
    serve_ui(store.uri, "mlruns", port)
    assert caplog.messages[1] == "The store has no runs yet."
    assert commands[0][-1] == f"http://127.0.0.1:{port}"
    sync([make_folder()], store)
    caplog.clear()
    serve_ui(store.uri, "mlruns", port)
    address = results_address(store.client, f"http://127.0.0.1:{port}")
    assert address.endswith("workflowType=machine_learning&viewStateShareKey=emea")
    assert caplog.messages[1] == "Study tests."
    assert "half a minute" in caplog.messages[2]
    assert commands[2][-3:] == [str(port), str(os.getpid()), address]
    assert commands[3] == server_command(store.uri, "mlruns", port)
    with pytest.raises(UserError, match="no runs of study other"):
        results_address(store.client, "http://x", "other")


def test_a_store_that_does_not_exist_is_not_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(ui, "open_client")
    uri = f"sqlite:///{tmp_path}/mistyped/mlflow.db"
    with pytest.raises(UserError, match=f"The store {uri} does not exist. Start .* --uri.") as said:
        serve_ui(uri, "mlruns", free_port())
    assert "emea run creates it, and emea sync DIR imports" in str(said.value)
    assert not list(tmp_path.iterdir())


def test_taken_port_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        with pytest.raises(UserError, match="--port"):
            serve_ui("sqlite:///never_opened.db", "mlruns", taken.getsockname()[1])


def test_a_server_is_only_given_its_address(
    store: MlflowStore,
    make_folder: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="emea")
    sync([make_folder()], store)
    monkeypatch.setattr(ui, "open_client", lambda uri: store.client)
    serve_ui("http://host:5000/", "mlruns", 5001)
    assert caplog.messages[-1].startswith("Open http://host:5000/#/experiments/")
