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
from emea.record.ui import HOST, serve_ui, server_command, study_addresses

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
    while (ready := f"MLflow UI is ready: {server}") not in (tmp_path / LOG_FILE).read_text():
        assert time.monotonic() < deadline, ready
        time.sleep(0.1)


def test_command_is_for_this_machine_only() -> None:
    command = server_command("sqlite:////srv/a.db", "mlruns", 5001)
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--workers") + 1] == "1"
    assert command[command.index("--port") + 1] == "5001"


def test_the_addresses_of_studies_with_runs_are_told(
    store: MlflowStore, make_folder: Callable[..., Path]
) -> None:
    assert study_addresses(store.client, 5001) == {}
    sync([make_folder()], store)
    experiment = store.experiment_id("tests")
    address = f"http://127.0.0.1:5001/#/experiments/{experiment}/runs?workflowType=machine_learning"
    assert study_addresses(store.client, 5001) == {"tests": address}


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


def test_it_says_when_the_server_answers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui, "POLL_SECONDS", 0.05)
    with answering(0.3) as port:
        assert not capsys.readouterr().out
        ui.tell_when_ready(port, os.getppid(), "http://runs")
    assert capsys.readouterr().out == "MLflow UI is ready: http://runs\n"
    ui.tell_when_ready(port, -1, "http://runs")  # the server has ended
    assert not capsys.readouterr().out


def test_the_runs_of_the_newest_study_come_first(
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
    port = free_port()
    serve_ui(store.uri, "mlruns", port)
    assert caplog.messages[0] == "The store has no runs yet."
    assert commands[0][-1] == f"http://127.0.0.1:{port}"
    sync([make_folder()], store)
    caplog.clear()
    serve_ui(store.uri, "mlruns", port)
    (address,) = study_addresses(store.client, port).values()
    assert caplog.messages[0] == f"Runs of study=tests: {address}"
    assert "half a minute" in caplog.messages[1]
    assert commands[2][-3:] == [str(port), str(os.getpid()), address]
    assert commands[3] == server_command(store.uri, "mlruns", port)


def test_taken_port_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        with pytest.raises(UserError, match="--port"):
            serve_ui("sqlite:///never_opened.db", "mlruns", taken.getsockname()[1])


def test_a_server_needs_no_server() -> None:
    with pytest.raises(UserError, match="open it in a browser"):
        serve_ui("http://host:5000", "mlruns", 5001)
