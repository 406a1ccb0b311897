"""The UI serves the store on the loopback address only."""

import json
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from emea.errors import UserError
from emea.record import ui
from emea.record.interrupted import close_dead_runs
from emea.record.mlflow_store import MlflowStore
from emea.record.run_record import LOCK_FILE, RunHeader, close_record, read_closing
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

from .conftest import MakeHeader, make_tracker
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
    answer = ask(
        f"{server}/api/2.0/mlflow/runs/search", {"experiment_ids": [experiment]}
    )
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
    started: list[tuple[object, ...]] = []
    monkeypatch.setattr(ui, "run_server", lambda *arguments: started.append(arguments))
    monkeypatch.setenv("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "true")
    monkeypatch.setenv("MLFLOW_LOGGING_LEVEL", "WARNING")
    port = free_port()
    server = f"http://127.0.0.1:{port}"
    serve_ui(store.uri, "mlruns", port)
    assert caplog.messages[1] == "The store has no runs yet."
    sync([make_folder()], store)
    caplog.clear()
    serve_ui(store.uri, "mlruns", port)
    assert caplog.messages[1].startswith("Study tests.")
    page = f"{server}/#/experiments/{store.experiment_id('tests')}/runs"
    view = "workflowType=machine_learning&viewStateShareKey=emea"
    command, health = server_command(store.uri, "mlruns", port), f"{server}/health"
    assert started == [(command, health, server), (command, health, f"{page}?{view}")]
    with pytest.raises(UserError, match="no runs of study other"):
        results_address(store.client, "http://x", "other")


def test_a_store_that_does_not_exist_is_not_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(ui, "open_client")
    uri = f"sqlite:///{tmp_path}/mistyped/mlflow.db"
    with pytest.raises(
        UserError, match=f"The store {uri} does not exist. Start .* --uri."
    ) as said:
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


TAGS = {
    "commit": "abc",
    "user": "ada",
    "command": "emea run data=zh",
    "sweep": "day/time",
}


def job(folder: Path, header: RunHeader, hit: float, status: str = "FINISHED") -> Path:
    tracker = NoTracker()
    tracker.start(header, folder)
    tracker.log(
        {"run/initial/hit@1": 0.1, "run/final/hit@1": hit, "run/final/mrr": hit}, step=0
    )
    tracker.finish(status, reason="" if status == "FINISHED" else "ValueError: no")
    return folder


@pytest.fixture
def folders(tmp_path: Path, make_header: MakeHeader) -> list[Path]:
    """Two jobs of a sweep over K, the second of which failed."""
    return [
        job(
            tmp_path / "multirun" / str(k),
            make_header(
                str(k) * 32, name=f"K={k}", params={"em.num_candidates": k}, tags=TAGS
            ),
            k / 10,
            status,
        )
        for k, status in ((5, "FINISHED"), (7, "FAILED"))
    ]


def test_the_columns_of_mlflow_are_filled_in(
    store: MlflowStore, folders: list[Path]
) -> None:
    sync(folders, store)
    runs = {
        run.info.run_name: run
        for run in store.client.search_runs([store.experiment_id("tests")])
    }
    run = runs["K=5"]
    assert run.data.tags["mlflow.user"] == "ada"
    assert run.data.tags["mlflow.source.name"] == "emea run data=zh"
    assert run.data.tags["mlflow.source.git.commit"] == "abc"
    assert "ValueError: no" in runs["K=7"].data.tags["emea.reason"]


def test_the_view_has_results_and_what_was_swept(
    store: MlflowStore, folders: list[Path]
) -> None:
    sync(folders, store)
    save_view(store.client, store.experiment_id("tests"))
    tags = store.client.get_experiment(store.experiment_id("tests")).tags
    assert tags["mlflow.experimentKind"] == "custom_model_development"
    state = json.loads(json.loads(tags[VIEW_TAG])["state"])
    # metrics of different protocols are not comparable
    results = ("initial/hit_at_1", "final/hit_at_1", "final/mrr")
    assert state["selectedColumns"][:5] == [
        *(f"metrics.`{name}`" for name in results),
        "params.`em.num_candidates`",
        "params.`protocol.name`",
    ]
    sections = {section["uuid"] for section in state["compareRunSections"]}
    assert {chart["metricSectionId"] for chart in state["compareRunCharts"]} == sections
    shown = {
        name
        for chart in state["compareRunCharts"]
        for name in chart["selectedMetricKeys"]
    }
    assert shown == {"neural/hit_at_1", "joint/hit_at_1", "neural/mrr", "joint/mrr"}
    assert state["columnOrder"][1:] == state["selectedColumns"]
    assert set(state["columnWidths"]) == set(state["columnOrder"])
    assert state["orderByKey"] == "metrics.`final/hit_at_1`"


def test_results_are_inside_the_window(
    store: MlflowStore, tmp_path: Path, make_header: MakeHeader
) -> None:
    """With three swept settings, Hit@1 is well inside a window of 1,500 pixels."""
    names = (
        "model.objective.batch_size",
        "em.weights.num_iterations",
        "model.encoder.output_dim",
    )
    headers = [make_header(str(k) * 32, params=dict.fromkeys(names, k)) for k in (5, 7)]
    sync([job(tmp_path / header.run_id, header, 0.5) for header in headers], store)
    save_view(store.client, store.experiment_id("tests"))
    tags = store.client.get_experiment(store.experiment_id("tests")).tags
    state = json.loads(json.loads(tags[VIEW_TAG])["state"])
    place = state["columnOrder"].index("metrics.`final/hit_at_1`")
    ends = sum(
        state["columnWidths"][name] for name in state["columnOrder"][: place + 1]
    )
    assert ends < 700


SERVES_LATE = """
import sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer

class Healthy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass

time.sleep(0.3)
server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Healthy)
print("listening", flush=True)
server.handle_request()
time.sleep(0.3)
sys.exit(3)
"""


def test_the_address_is_printed_when_the_server_answers(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(ui.logger, "info", lambda *texts: print(texts[0] % texts[1:]))
    port = free_port()
    command = [sys.executable, "-S", "-c", SERVES_LATE, str(port)]
    with pytest.raises(UserError, match="ended with exit status 3"):
        ui.run_server(command, f"http://{HOST}:{port}/health", "http://runs")
    assert capfd.readouterr().out == "listening\nOpen http://runs\n"


def test_a_server_that_fails_has_no_address(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="emea")
    command = [sys.executable, "-S", "-c", "raise SystemExit(5)"]
    with pytest.raises(UserError, match="exit status 5"):
        ui.run_server(command, f"http://{HOST}:{free_port()}/health", "http://runs")
    assert caplog.messages == []


def test_runs_whose_process_died_are_marked(
    store: MlflowStore, tmp_path: Path, make_header: MakeHeader
) -> None:
    def started(name: str, run_id: str) -> RunHeader:
        header = make_header(run_id * 32, name=name)
        make_tracker(store.uri).start(header, tmp_path / name)
        (tmp_path / name / LOCK_FILE).touch()
        return header

    dead, alive, gone, finished = map(
        started, ("dead", "alive", "gone", "finished"), "abcd"
    )
    shutil.rmtree(tmp_path / "gone")
    close_record(tmp_path / "finished", "FINISHED")
    with FileLock(tmp_path / "alive" / LOCK_FILE):
        assert close_dead_runs(store.client) == 3
    shown = {
        header.name: store.find_runs(header)[0]
        for header in (dead, alive, gone, finished)
    }
    assert {name: run.info.status for name, run in shown.items()} == {
        "dead": "KILLED",
        "alive": "RUNNING",
        "gone": "KILLED",
        "finished": "FINISHED",
    }
    assert "process ended" in shown["dead"].data.tags["mlflow.note.content"]
    assert "emea sync" in shown["finished"].data.tags["emea.reason"]
    closing = read_closing(tmp_path / "dead")
    assert closing is not None and closing.status == "KILLED"
    # what was marked is still imported completely
    assert sync([tmp_path / "finished"], store)["imported"] == 1


def test_a_run_of_another_machine_is_not_marked(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_tracker(store.uri).start(make_header(), tmp_path / "run")
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    assert close_dead_runs(store.client) == 0


def test_what_follows_from_an_option_is_not_swept() -> None:
    runs = [
        {"model.name": "rrea", "model.dim": 100, "em.k": 5},
        {"model.name": "lightea", "model.dim": 64, "em.k": 5},
        {"model.name": "lightea", "model.dim": 64, "em.k": 5},
    ]
    assert swept_keys(runs) == ["model.name"]
    runs.append({"model.name": "rrea", "model.dim": 200, "em.k": 5})
    assert swept_keys(runs) == ["model.name", "model.dim"]
