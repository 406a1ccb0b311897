"""The UI serves the store on the loopback address only."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emea.errors import UserError
from emea.tracking.mlflow_store import MlflowStore
from emea.tracking.sync import sync
from emea.tracking.ui import HOST, serve_ui, server_command


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def ask(url: str, body: dict[str, Any] | None = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


@pytest.fixture
def server(store: MlflowStore, tmp_path: Path) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "emea.tracking", "ui", "--port", str(port)]
    root = Path(__file__).resolve().parents[2]
    with open(tmp_path / "server.log", "w") as log:
        process = subprocess.Popen(
            [*command, "--uri", store.uri],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(root)},
            stdout=log,
            stderr=log,
        )
    address = f"http://{HOST}:{port}"
    try:
        for _ in range(120):
            try:
                ask(f"{address}/health")
                break
            except OSError:
                assert process.poll() is None, (tmp_path / "server.log").read_text()
                time.sleep(0.5)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)
    # Whoever stops the command stops the server: nobody may still answer.
    with pytest.raises(OSError):
        for _ in range(20):
            ask(f"{address}/health")
            time.sleep(0.5)


@pytest.mark.slow
def test_server_lists_runs_and_shows_files(
    server: str, store: MlflowStore, make_folder: Callable[..., Path]
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


def test_command_is_for_this_machine_only() -> None:
    command = server_command("sqlite:////tmp/a.db", "mlruns", 5001)
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--workers") + 1] == "1"
    assert command[command.index("--port") + 1] == "5001"


def test_taken_port_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        with pytest.raises(UserError, match="--port"):
            serve_ui("sqlite:///never_opened.db", "mlruns", taken.getsockname()[1])


def test_a_server_needs_no_server() -> None:
    with pytest.raises(UserError, match="open it in a browser"):
        serve_ui("http://host:5000", "mlruns", 5001)
