"""The live tracker against a real store, and against stores in trouble."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from emea.record import mlflow_tracker
from emea.record.mlflow_store import MlflowStore
from emea.record.mlflow_tracker import MlflowTracker
from emea.record.run_record import RunHeader, read_closing, read_series

MakeHeader = Callable[..., RunHeader]


def tracker_for(store: MlflowStore, tmp_path: Path, flush_seconds: float = 5.0) -> MlflowTracker:
    return MlflowTracker(
        store.uri, str(tmp_path / "store" / "artifacts"), flush_seconds=flush_seconds
    )


def test_a_whole_run(store: MlflowStore, tmp_path: Path, make_header: MakeHeader) -> None:
    folder = tmp_path / "run"
    tracker = tracker_for(store, tmp_path)
    tracker.start(make_header(), folder)
    tracker.log({"final/hit@1": 0.25, "loss": 2.0}, step=0)
    tracker.log({"final/hit@1": 0.5}, step=10)
    (folder / "config.yaml").write_text("a: 1\n")
    (folder / ".hydra").mkdir()
    (folder / ".hydra" / "config.yaml").write_bytes(b"123")
    tracker.finish("FINISHED", reason="done")
    tracker.finish("FAILED")

    [run] = store.find_runs(make_header())
    client, run_id = store.client, run.info.run_id
    assert run.info.run_name == make_header().name
    assert run.info.status == "FINISHED"
    assert run.info.start_time == make_header().start_time
    closing = read_closing(folder)
    assert closing is not None and run.info.end_time == closing.end_time
    assert run.data.params == {
        "em.k": "10",
        "ratio": "0.01",
        "split_seed": "None",
        "em.two_way": "True",
    }
    expected = {"commit": "abc", "protocol": "strict", "emea.run_id": "a" * 32}
    expected |= {"emea.complete": "true", "emea.reason": "done"}
    assert expected.items() <= run.data.tags.items()
    assert set(run.data.metrics) == {"final/hit_at_1", "loss"}
    history = client.get_metric_history(run_id, "final/hit_at_1")
    times = [point.time for point in read_series(folder)]
    read = [(point.step, point.value, point.timestamp) for point in history]
    assert read == [(0, 0.25, times[0]), (10, 0.5, times[1])]
    names = {item.path for item in client.list_artifacts(run_id)}
    assert names == {"run.json", "series.jsonl", "config.yaml", ".hydra"}
    assert [item.path for item in client.list_artifacts(run_id, ".hydra")] == [".hydra/config.yaml"]


def test_metrics_are_sent_together_during_the_run(
    store: MlflowStore,
    tmp_path: Path,
    make_header: MakeHeader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tracker = tracker_for(store, tmp_path)
    tracker.start(make_header(), tmp_path / "run")
    [run] = store.find_runs(make_header())
    for step in range(20):
        tracker.log({"loss": 1.0}, step)
    assert store.client.get_metric_history(run.info.run_id, "loss") == []
    now = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now + 10)
        tracker.log({"loss": 1.0}, 20)
    while len(store.client.get_metric_history(run.info.run_id, "loss")) < 21:
        assert time.monotonic() < now + 30
    assert store.client.get_run(run.info.run_id).info.status == "RUNNING"


@pytest.mark.parametrize("method", ["create_run", "log_points", "finish_run"])
def test_a_store_in_trouble_does_not_stop_the_run(
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
    tracker = tracker_for(store, tmp_path, flush_seconds=0.0)
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
    assert [point.step for point in read_series(folder)] == [1, 2]
    closing = read_closing(folder)
    assert closing is not None and closing.status == "FINISHED"


def test_damaged_database_does_not_stop_the_run(
    tmp_path: Path, make_header: MakeHeader, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "mlflow.db").write_bytes(b"this is no database" * 100)
    tracker = MlflowTracker(f"sqlite:///{tmp_path}/mlflow.db")
    with caplog.at_level(logging.WARNING, "emea"):
        tracker.start(make_header(), tmp_path / "run")
        tracker.finish("FINISHED")
    assert len([record for record in caplog.records if record.name.startswith("emea")]) == 1
    assert read_closing(tmp_path / "run") is not None


def test_a_resumed_run_is_logged_completely(
    store: MlflowStore, tmp_path: Path, make_header: MakeHeader
) -> None:
    killed = tracker_for(store, tmp_path)
    killed.start(make_header(), tmp_path / "run")
    killed.log({"loss": 1.0}, step=0)
    tracker = tracker_for(store, tmp_path)
    tracker.start(make_header(), tmp_path / "run")
    tracker.log({"loss": 2.0}, step=1)
    tracker.finish("FINISHED")
    [run] = store.find_runs(make_header())
    history = store.client.get_metric_history(run.info.run_id, "loss")
    assert [point.value for point in history] == [1.0, 2.0]


def test_ui_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    default = MlflowTracker()
    assert default.ui_hint == f"emea ui --uri sqlite:///{tmp_path}/mlflow.db"
    (tmp_path / "Makefile").touch()  # of the user's own project
    assert default.ui_hint == f"emea ui --uri sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setattr(mlflow_tracker, "PROJECT", tmp_path)
    assert default.ui_hint == "make ui"
    other = MlflowTracker("sqlite:////srv/other.db").ui_hint
    assert other == "emea ui --uri sqlite:////srv/other.db"
    assert MlflowTracker("http://me:secret@host:5000").ui_hint == "open http://host:5000"
    assert MlflowTracker("postgresql://me:secret@host/db").ui_hint is None


def test_there_is_no_ui_hint_for_a_store_that_failed(
    tmp_path: Path, make_header: Callable[..., RunHeader]
) -> None:
    (tmp_path / "file").touch()
    tracker = MlflowTracker(f"sqlite:///{tmp_path}/file/store.db")
    assert tracker.ui_hint is not None
    tracker.start(make_header(), tmp_path / "run")
    assert tracker.ui_hint is None
