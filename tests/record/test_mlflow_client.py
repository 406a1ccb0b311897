"""Stores are opened quietly and by one process at a time."""

import logging
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from emea.record.mlflow_client import open_client, set_environment
from emea.record.mlflow_tracker import MlflowTracker
from emea.record.run_record import RunHeader

NUM_PROCESSES = 3
NUM_STEPS = 40


def test_the_users_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "77")
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    set_environment()
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "77"
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"


def test_fresh_store_opens_without_chatter(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    open_client(f"sqlite:///{tmp_path}/new/mlflow.db")
    assert (tmp_path / "new" / "mlflow.db").exists()
    assert [record.name for record in caplog.records] == []
    assert "INFO" not in capfd.readouterr().err


def _one_run(index: int, database: Path, header: RunHeader, gate: Callable[[], object]) -> None:
    tracker = MlflowTracker(
        f"sqlite:///{database}", str(database.parent / "artifacts"), flush_seconds=0.0
    )
    import mlflow  # noqa: F401  # before the gate, so that all reach the fresh store at once

    gate()
    tracker.start(header, database.parent / f"run{index}")
    for step in range(NUM_STEPS):
        tracker.log({"hit@1": step / NUM_STEPS}, step)
    tracker.finish("FINISHED")


@pytest.mark.slow
def test_processes_that_open_a_fresh_store_together_lose_nothing(
    tmp_path: Path, make_header: Callable[..., RunHeader]
) -> None:
    context = multiprocessing.get_context("spawn")
    database = tmp_path / "mlflow.db"
    gate = context.Barrier(NUM_PROCESSES, timeout=60)
    workers = [
        context.Process(target=_one_run, args=(i, database, make_header(f"{i}" * 32), gate.wait))
        for i in range(NUM_PROCESSES)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=90)
        assert worker.exitcode == 0
    client = open_client(f"sqlite:///{database}")
    experiment = client.get_experiment_by_name("tests")
    runs = client.search_runs([experiment.experiment_id])
    assert {run.data.tags["emea.run_id"][0] for run in runs} == {"0", "1", "2"}
    for run in runs:
        assert run.data.tags["emea.complete"] == "true"
        history = client.get_metric_history(run.info.run_id, "hit_at_1")
        assert sorted(point.step for point in history) == list(range(NUM_STEPS))
