"""The UI serves the store on the loopback address only."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emea.errors import UserError
from emea.record import ui
from emea.record.mlflow_store import MlflowStore
from emea.record.run_record import RunHeader
from emea.record.sync import sync
from emea.record.tracker import NoTracker
from emea.record.ui import (
    HOST,
    VIEW_TAG,
    results_address,
    save_view,
    serve_ui,
    server_command,
    swept_keys,
)

from .conftest import MakeHeader
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
    sync([folder], store)
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
    assert f"Open {server}" in (tmp_path / LOG_FILE).read_text()


def test_command_is_for_this_machine_only() -> None:
    command = server_command("sqlite:////srv/a.db", "mlruns", 5001)
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--workers") + 1] == "1"
    assert command[command.index("--port") + 1] == "5001"
    # otherwise uvicorn prints a traceback when it is interrupted
    assert "--lifespan off" in command[command.index("--uvicorn-opts") + 1]


def test_the_latest_study_is_opened(
    store: MlflowStore,
    make_folder: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="emea")
    commands: list[list[str]] = []
    monkeypatch.setattr(ui.os, "execv", lambda program, command: commands.append(command))
    monkeypatch.setenv("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "true")
    monkeypatch.setenv("MLFLOW_LOGGING_LEVEL", "WARNING")
    port = free_port()
    server = f"http://127.0.0.1:{port}"
    serve_ui(store.uri, "mlruns", port)
    assert caplog.messages[1] == "The store has no runs yet."
    assert caplog.messages[-1] == f"Open {server}"
    sync([make_folder()], store)
    caplog.clear()
    serve_ui(store.uri, "mlruns", port)
    assert caplog.messages[1].startswith("Study tests.")
    page = f"{server}/#/experiments/{store.experiment_id('tests')}/runs"
    view = "workflowType=machine_learning&viewStateShareKey=emea"
    assert caplog.messages[-1] == f"Open {page}?{view}"
    assert commands == [server_command(store.uri, "mlruns", port)] * 2
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


TAGS = {"commit": "abc", "user": "ada", "command": "emea run data=zh", "sweep": "day/time"}


def job(folder: Path, header: RunHeader, hit: float, status: str = "FINISHED") -> Path:
    tracker = NoTracker()
    tracker.start(header, folder)
    tracker.log({"run/initial/hit@1": 0.1, "run/final/hit@1": hit, "run/final/mrr": hit}, step=0)
    tracker.finish(status, reason="" if status == "FINISHED" else "ValueError: no")
    return folder


@pytest.fixture
def folders(tmp_path: Path, make_header: MakeHeader) -> list[Path]:
    """Two jobs of a sweep over K, the second of which failed."""
    return [
        job(
            tmp_path / "multirun" / str(k),
            make_header(str(k) * 32, name=f"K={k}", params={"em.num_candidates": k}, tags=TAGS),
            k / 10,
            status,
        )
        for k, status in ((5, "FINISHED"), (7, "FAILED"))
    ]


def test_the_columns_of_mlflow_are_filled_in(store: MlflowStore, folders: list[Path]) -> None:
    sync(folders, store)
    runs = {
        run.info.run_name: run for run in store.client.search_runs([store.experiment_id("tests")])
    }
    run = runs["K=5"]
    assert run.data.tags["mlflow.user"] == "ada"
    assert run.data.tags["mlflow.source.name"] == "emea run data=zh"
    assert run.data.tags["mlflow.source.git.commit"] == "abc"
    assert "ValueError: no" in runs["K=7"].data.tags["emea.reason"]


def test_the_view_has_results_and_what_was_swept(store: MlflowStore, folders: list[Path]) -> None:
    sync(folders, store)
    save_view(store.client, store.experiment_id("tests"))
    tags = store.client.get_experiment(store.experiment_id("tests")).tags
    assert tags["mlflow.experimentKind"] == "custom_model_development"
    state = json.loads(json.loads(tags[VIEW_TAG])["state"])
    # metrics of different protocols are not comparable
    results = ("initial/hit_at_1", "final/hit_at_1", "final/mrr")
    assert state["selectedColumns"][:5] == [
        "params.`em.num_candidates`",
        *(f"metrics.`{name}`" for name in results),
        "params.`protocol.name`",
    ]
    assert state["columnOrder"][1:] == state["selectedColumns"]
    assert set(state["columnWidths"]) == set(state["columnOrder"])
    assert state["orderByKey"] == "metrics.`final/hit_at_1`"


def test_what_follows_from_an_option_is_not_swept() -> None:
    runs = [
        {"model.name": "rrea", "model.dim": 100, "em.k": 5},
        {"model.name": "lightea", "model.dim": 64, "em.k": 5},
        {"model.name": "lightea", "model.dim": 64, "em.k": 5},
    ]
    assert swept_keys(runs) == ["model.name"]
    runs.append({"model.name": "rrea", "model.dim": 200, "em.k": 5})
    assert swept_keys(runs) == ["model.name", "model.dim"]
