"""Trackers: the folder only, and the live one against a real store."""

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hydra.utils import instantiate

from emea.config.composition import composed
from emea.record.mlflow_store import MlflowStore
from emea.record.mlflow_tracker import BoundedCalls, MlflowTracker
from emea.record.run_record import MetricPoint, read_closing, read_series
from emea.record.tracker import NoTracker, Tracker

from .conftest import MakeHeader, make_tracker

ROOT = Path(__file__).resolve().parents[2]

WITHOUT_MLFLOW = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "mlflow":
            raise ImportError("mlflow is not installed")

sys.meta_path.insert(0, Block())
from pathlib import Path
from emea.record.tracker import NoTracker
from emea.record.run_record import RunHeader, read_series
from tests.record.conftest import make_tracker

header = RunHeader("a" * 32, "name", "tests")
for tracker, folder in [(NoTracker(), "none"), (make_tracker("sqlite:///a.db"), "mlflow")]:
    tracker.start(header, Path(folder))
    tracker.log({"hit@1": 0.5}, 1)
    tracker.finish("FINISHED")
    assert len(read_series(folder)) == 1, folder
assert "mlflow" not in sys.modules
"""

HANGS = """
import time
from emea.record.mlflow_tracker import BoundedCalls
try:
    BoundedCalls(0.1).do(lambda: time.sleep(3600))
except TimeoutError as error:
    print(error)
"""


@pytest.mark.parametrize("option", ["mlflow", "none"])
def test_every_option_is_a_tracker(
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    store_template: Path,
    make_header: MakeHeader,
) -> None:
    (tmp_path / "mlflow.db").write_bytes(store_template.read_bytes())
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    tracker: Tracker = instantiate(composed([f"tracking={option}"]).tracking)
    assert tracker.ui_hint == ("emea ui" if option == "mlflow" else None)
    tracker.start(make_header(), tmp_path / "run")
    tracker.log({"hit@1": 0.5}, step=0)
    tracker.finish("FINISHED")
    assert read_closing(tmp_path / "run") is not None


def test_the_environment_names_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://host:5000")
    tracker = instantiate(composed(["tracking=mlflow"]).tracking)
    assert isinstance(tracker, MlflowTracker)
    assert tracker.ui_hint == "open http://host:5000"


def test_records_stay_in_the_folder(tmp_path: Path, make_header: MakeHeader) -> None:
    tracker = NoTracker()
    tracker.start(make_header(), tmp_path)
    tracker.log({"hit@1": 0.5}, step=2)
    tracker.finish("KILLED", "signal")
    tracker.finish("FINISHED")
    closing = read_closing(tmp_path)
    assert closing is not None and (closing.status, closing.reason) == (
        "KILLED",
        "signal",
    )
    assert [point.step for point in read_series(tmp_path)] == [2]
    with pytest.raises(RuntimeError, match="started"):
        tracker.log({}, step=3)


def test_nothing_needs_mlflow(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_MLFLOW]
    env = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # live tracking without MLflow logs one warning
    assert done.stderr.count("emea sync") == 1


def test_metrics_are_sent_together_during_the_run(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tracker = make_tracker(store.uri, flush_seconds=5.0)
    tracker.start(make_header(), tmp_path / "run")
    [run] = store.find_runs(make_header())
    for step in range(20):
        tracker.log({"loss": 1.0}, step)
    assert store.client.get_metric_history(run.info.run_id, "loss") == []
    now = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now + 10)
        tracker.log({"loss": 1.0}, 20)
    wait_until(tracker._calls.is_idle)
    assert len(store.client.get_metric_history(run.info.run_id, "loss")) == 21
    assert store.client.get_run(run.info.run_id).info.status == "RUNNING"


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_slow_store_gets_every_point_and_does_not_slow_the_run(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    log_points = MlflowStore.log_points

    def slow(self: MlflowStore, run_id: str, points: Sequence[MetricPoint]) -> None:
        time.sleep(0.2)
        log_points(self, run_id, points)

    monkeypatch.setattr(MlflowStore, "log_points", slow)
    # one answer per point would take two minutes
    tracker = make_tracker(store.uri, flush_seconds=0.0, patience_seconds=20.0)
    tracker.start(make_header(), tmp_path / "run")
    patience = tracker._calls._left
    for step in range(600):
        tracker.log({"loss": step / 7}, step)
    assert tracker._calls._left == patience, "no time is spent waiting during the run"
    tracker.finish("FINISHED")
    [run] = store.find_runs(make_header())
    history = store.client.get_metric_history(run.info.run_id, "loss")
    # every point, and with all its digits
    assert sorted((point.step, point.value) for point in history) == [
        (step, step / 7) for step in range(600)
    ]
    assert run.info.status == "FINISHED" and not caplog.messages


def test_a_call_that_hangs_does_not_hold_the_run_and_does_not_continue_later(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tracker = make_tracker(store.uri, flush_seconds=0.0, patience_seconds=0.3)
    tracker._calls._left = 20.0  # the start is not what is tested
    tracker.start(make_header(), tmp_path / "run")
    tracker._calls._left = 0.3
    answers = Event()
    client = tracker._store.client
    log_batch = client.log_batch

    def hang(*arguments: Any, **options: Any) -> None:
        answers.wait()
        log_batch(*arguments, **options)

    monkeypatch.setattr(client, "log_batch", hang)
    began = time.monotonic()
    for step in range(600):
        tracker.log({"loss": 1.0}, step)
    tracker.finish("FINISHED")
    assert time.monotonic() - began < 5.0
    assert "kept the run waiting for 0.3 s" in caplog.text
    # when the server answers at last, the run in MLflow stays as it was, for emea sync to replace
    call = tracker._calls._call
    answers.set()
    call.exception(timeout=20)
    [run] = store.find_runs(make_header())
    assert run.info.status == "RUNNING" and "emea.complete" not in run.data.tags
    assert [point.step for point in read_series(tmp_path / "run")] == list(range(600))


def test_the_patience_is_a_setting(
    tmp_path: Path,
    make_header: MakeHeader,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = Event()
    monkeypatch.setattr(MlflowStore, "create_run", lambda *_: answers.wait())
    config = composed(["tracking=mlflow", "tracking.patience_seconds=0.05"])
    tracker: Tracker = instantiate(config.tracking)
    tracker.start(make_header(), tmp_path / "run")
    answers.set()
    assert "kept the run waiting for 0.05 s" in caplog.text


@pytest.mark.parametrize("method", ["create_run", "log_points", "finish_run"])
def test_an_error_of_the_store_does_not_stop_the_run(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    method: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("store away\nmore")

    monkeypatch.setattr(MlflowStore, method, fail)
    tracker = make_tracker(store.uri, flush_seconds=0.0)
    folder = tmp_path / "run"
    with caplog.at_level(logging.WARNING, "emea"):
        tracker.start(make_header(), folder)
        tracker.log({"hit@1": 0.5}, step=1)
        tracker.log({"hit@1": 0.6}, step=2)
        tracker.finish("FINISHED")
    assert len(caplog.records) == 1
    message = caplog.records[0].getMessage()
    assert f"emea sync {folder} --uri {store.uri}" in message
    assert "store away" in message and "more" not in message
    assert tracker.ui_hint is None
    assert [point.step for point in read_series(folder)] == [1, 2]
    closing = read_closing(folder)
    assert closing is not None and closing.status == "FINISHED"


def test_a_resumed_run_is_logged_completely(
    store: MlflowStore, tmp_path: Path, make_header: MakeHeader
) -> None:
    killed = make_tracker(store.uri)
    killed.start(make_header(), tmp_path / "run")
    killed.log({"loss": 1.0}, step=0)
    tracker = make_tracker(store.uri)
    tracker.start(make_header(), tmp_path / "run")
    tracker.log({"loss": 2.0}, step=1)
    tracker.finish("FINISHED")
    [run] = store.find_runs(make_header())
    history = store.client.get_metric_history(run.info.run_id, "loss")
    assert [point.value for point in history] == [1.0, 2.0]


def test_ui_hint() -> None:
    assert make_tracker("sqlite:///mlflow.db").ui_hint == "emea ui"
    other = make_tracker("sqlite:////srv/other.db").ui_hint
    assert other == "emea ui --uri sqlite:////srv/other.db"
    assert make_tracker("http://me:secret@host:5000").ui_hint == "open http://host:5000"
    assert make_tracker("postgresql://me:secret@host/db").ui_hint is None


def test_calls_share_their_time() -> None:
    calls = BoundedCalls(0.3)
    assert calls.do(lambda: 3) == 3
    calls.do(lambda: time.sleep(0.2))
    with pytest.raises(TimeoutError, match=r"kept the run waiting for 0\.3 s"):
        calls.do(lambda: time.sleep(0.2))


def test_a_call_that_hangs_does_not_keep_the_process_alive() -> None:
    command = [sys.executable, "-c", HANGS]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "it kept the run waiting for 0.1 s\n")
