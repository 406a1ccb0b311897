"""The UI serves the store on the loopback address only."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emea.errors import UserError
from emea.tracking.mlflow_store import MlflowStore
from emea.tracking.sync import sync
from emea.tracking.ui import HOST, serve_ui, server_command, study_addresses

from .serving import ask, served


@pytest.fixture
def server(store: MlflowStore, tmp_path: Path) -> Iterator[str]:
    with served(store.uri, tmp_path) as address:
        yield address
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


def test_taken_port_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        with pytest.raises(UserError, match="--port"):
            serve_ui("sqlite:///never_opened.db", "mlruns", taken.getsockname()[1])


def test_a_server_needs_no_server() -> None:
    with pytest.raises(UserError, match="open it in a browser"):
        serve_ui("http://host:5000", "mlruns", 5001)
