"""What reaches MLflow reads back through MLflow's own client."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from mlflow.entities import Metric, Param

from emea.record.mlflow_store import MAX_PARAM_LENGTH, MAX_TAG_LENGTH, MlflowStore
from emea.record.run_record import MetricPoint, RunClosing, RunHeader

MakeHeader = Callable[..., RunHeader]


def test_params_come_in_batches_and_are_cut(store: MlflowStore, make_header: MakeHeader) -> None:
    params = {f"p{i}": i for i in range(250)} | {"long": "x" * 7000, "odd@name": None}
    run = store.create_run(make_header(params=params, tags={"note": "y" * 9000}))
    data = store.client.get_run(run).data
    assert len(data.params) == 252
    assert data.params["p249"] == "249"
    assert data.params["long"] == "x" * (MAX_PARAM_LENGTH - 1) + "…"
    assert data.params["odd_at_name"] == "None"
    assert data.tags["note"] == "y" * (MAX_TAG_LENGTH - 1) + "…"


def test_batches_stay_within_what_servers_accept(
    store: MlflowStore, make_header: MakeHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[tuple[int, int]] = []
    # A sqlite store takes any number; only a server refuses, so the calls are watched.
    log_batch = store.client.log_batch

    def watch(run_id: str, metrics: Sequence[Metric] = (), params: Sequence[Param] = ()) -> None:
        sizes.append((len(params), len(metrics)))
        log_batch(run_id, metrics=metrics, params=params)

    monkeypatch.setattr(store.client, "log_batch", watch)
    run = store.create_run(make_header(params={f"p{i}": i for i in range(201)}))
    store.log_points(run, [MetricPoint(i, i, {"loss": 0.0, "mrr": 0.0}) for i in range(501)])
    assert sizes == [(100, 0), (100, 0), (1, 0), (0, 1000), (0, 2)]


def test_points_keep_steps_and_times_over_batches(
    store: MlflowStore, make_header: MakeHeader
) -> None:
    run = store.create_run(make_header())
    points = [MetricPoint(i, 1000 + i, {"hit@1": i / 2, "loss": -i}) for i in range(700)]
    store.log_points(run, points)
    history = store.client.get_metric_history(run, "hit_at_1")
    read = sorted((point.step, point.timestamp, point.value) for point in history)
    assert read == [(i, 1000 + i, i / 2) for i in range(700)]
    assert len(store.client.get_metric_history(run, "loss")) == 700


def test_experiment_is_made_once_with_an_absolute_artifact_root(store: MlflowStore) -> None:
    first = store.experiment_id("tests")
    again = MlflowStore(store.uri, "elsewhere")
    assert again.experiment_id("tests") == first
    location = store.client.get_experiment(first).artifact_location
    assert location.startswith("file:///") and location.endswith("/store/art%20ifacts")


def test_earlier_copies_make_room(store: MlflowStore, make_header: MakeHeader) -> None:
    first = store.create_run(make_header())
    other = store.create_run(make_header("b" * 32))
    second = store.create_run(make_header())
    assert [run.info.run_id for run in store.find_runs(make_header())] == [second]
    assert store.client.get_run(first).info.lifecycle_stage == "deleted"
    assert store.client.get_run(other).info.lifecycle_stage == "active"


def test_large_files_stay_behind_and_are_named(
    store: MlflowStore, make_header: MakeHeader, make_folder: Callable[..., Path]
) -> None:
    folder = make_folder()
    (folder / "checkpoint.safetensors").write_bytes(b"1" * 2000)
    small = MlflowStore(store.uri, max_artifact_mb=0.0015)
    run = small.create_run(make_header())
    small.finish_run(run, folder, RunClosing("FAILED", 1_700_000_009_000, "oom"), complete=False)
    names = {item.path for item in store.client.list_artifacts(run)}
    assert names == {"run.json", "series.jsonl", "metrics.json", ".hydra"}
    read = store.client.get_run(run)
    assert read.data.tags["emea.skipped_files"] == "checkpoint.safetensors"
    assert read.data.tags["emea.reason"] == "oom"
    assert "emea.complete" not in read.data.tags
    assert (read.info.status, read.info.end_time) == ("FAILED", 1_700_000_009_000)
    assert small.complete_copy(make_header(), None) is None


def test_a_store_that_was_left_gets_nothing_more(
    store: MlflowStore, make_header: MakeHeader
) -> None:
    store.create_run(make_header())
    store.leave()
    with pytest.raises(RuntimeError, match="closed for this run"):
        store.create_run(make_header())
