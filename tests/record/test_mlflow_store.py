"""Runs that reach MLflow read back through MLflow's own client."""

import json
import os
import socket
from collections.abc import Sequence
from multiprocessing import SimpleQueue, get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.entities import Metric, Param
from mlflow.utils.validation import _validate_metric_name

from emea.record.mlflow_store import (
    MAX_PARAM_LENGTH,
    MAX_TAG_LENGTH,
    MlflowStore,
    compared_params,
    load_mlflow,
    metric_name,
    stored_name,
)
from emea.record.run_record import (
    DataPart,
    MetricPoint,
    RunClosing,
    read_header,
    start_record,
)

from .conftest import MakeFolder, MakeHeader


@given(st.text())
def test_mlflow_accepts_every_name(name: str) -> None:
    _validate_metric_name(metric_name(name))


def test_the_users_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "77")
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    load_mlflow()
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "77"
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"


def test_long_values_are_cut(store: MlflowStore, make_header: MakeHeader) -> None:
    params = {"long": "x" * 7000, "odd@name": None, "tracking.uri": "sqlite:///x"}
    run = store.create_run(make_header(params=params, tags={"note": "y" * 9000}))
    data = store.client.get_run(run).data
    assert data.params == {
        "long": "x" * (MAX_PARAM_LENGTH - 1) + "…",
        "odd_at_name": "None",
    }
    assert data.tags["note"] == "y" * (MAX_TAG_LENGTH - 1) + "…"


def test_batches_stay_within_what_servers_accept(
    store: MlflowStore, make_header: MakeHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[tuple[int, int]] = []
    # A sqlite store takes any number; only a server refuses, so the calls are watched.
    log_batch = store.client.log_batch

    def watch(
        run_id: str, metrics: Sequence[Metric] = (), params: Sequence[Param] = ()
    ) -> None:
        sizes.append((len(params), len(metrics)))
        log_batch(run_id, metrics=metrics, params=params)

    monkeypatch.setattr(store.client, "log_batch", watch)
    run = store.create_run(make_header(params={f"p{i}": i for i in range(201)}))
    store.log_points(
        run, [MetricPoint(i, 9 + i, {"loss": i / 2, "mrr": 0.0}) for i in range(501)]
    )
    assert sizes == [(100, 0), (100, 0), (1, 0), (0, 1000), (0, 2)]
    history = store.client.get_metric_history(run, "loss")
    read = sorted((point.step, point.timestamp, point.value) for point in history)
    assert read == [(i, 9 + i, i / 2) for i in range(501)]


def test_experiment_is_made_once_with_an_absolute_artifact_root(
    store: MlflowStore,
) -> None:
    first = store.experiment_id("tests")
    assert MlflowStore(store.uri, "elsewhere").experiment_id("tests") == first
    location = store.client.get_experiment(first).artifact_location
    assert location.startswith("file:///") and location.endswith("/store/art%20ifacts")
    store.client.delete_experiment(first)
    assert store.experiment_id("tests") == first
    assert store.client.get_experiment(first).lifecycle_stage == "active"


def test_earlier_copies_are_replaced(
    store: MlflowStore, make_header: MakeHeader
) -> None:
    first = store.create_run(make_header())
    other = store.create_run(make_header("b" * 32))
    second = store.create_run(make_header())
    assert [run.info.run_id for run in store.find_runs(make_header())] == [second]
    assert store.client.get_run(first).info.lifecycle_stage == "deleted"
    assert store.client.get_run(other).info.lifecycle_stage == "active"


def test_large_files_are_not_copied_but_named(
    store: MlflowStore,
    make_header: MakeHeader,
    make_folder: MakeFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = make_folder()
    (folder / "checkpoint.safetensors").write_bytes(b"1" * 2000)
    monkeypatch.setattr("emea.record.mlflow_store.MAX_ARTIFACT_MB", 0.0015)
    small = MlflowStore(store.uri)
    run = small.create_run(make_header())
    small.finish_run(run, folder, RunClosing("FAILED", 1_700_000_009_000, "oom"))
    names = {item.path for item in store.client.list_artifacts(run)}
    assert names == {"run.json", "series.jsonl", "metrics.json", ".hydra"}
    read = store.client.get_run(run)
    assert read.data.tags["emea.skipped_files"] == "checkpoint.safetensors"
    assert read.data.tags["emea.reason"] == "oom"
    assert (read.info.status, read.info.end_time) == ("FAILED", 1_700_000_009_000)


def test_only_parameters_that_can_make_a_difference_stay() -> None:
    left_out = (
        "data._target_",
        "model.optimizer._partial_",
        "data.root",
        "tracking.uri",
        "hydra.x",
    )
    kept = (
        "data.name",
        "em.iterations",
        "model.encoder.dim",
        "ratio.value",
        "studying",
    )
    assert compared_params(dict.fromkeys((*left_out, *kept))) == dict.fromkeys(kept)


def test_groups_that_the_method_does_not_use_are_left_out() -> None:
    groups = {
        "model.name": "rrea",
        "em.iterations": 10,
        "similarity.k": 10,
        "data.name": "x",
    }
    prase = groups | {"method.uses": "['model', 'similarity', 'search']"}
    assert set(compared_params(prase)) == {"model.name", "similarity.k", "data.name"}
    assert set(compared_params(groups | {"method.uses": "[]"})) == {"data.name"}
    assert compared_params(groups) == groups


DATA = (
    DataPart("source graph", "zh source graph", "zh.nt", "a" * 64, {"num_triples": 3}),
    DataPart("test links", "zh test links", "links.tsv", "b" * 64, {"num_links": 2}),
)


def test_graphs_and_links_are_inputs(
    store: MlflowStore, make_header: MakeHeader, tmp_path: Path
) -> None:
    # as an import reads them
    start_record(tmp_path, make_header(data=DATA))
    run = store.client.get_run(store.create_run(read_header(tmp_path)))
    found = {}
    for one in run.inputs.dataset_inputs:
        [role] = [tag.value for tag in one.tags if tag.key == "mlflow.data.context"]
        found[role] = (
            one.dataset.name,
            one.dataset.digest,
            json.loads(one.dataset.source)["uri"],
        )
    assert found == {
        "source graph": ("zh source graph", "a" * 36, "zh.nt"),
        "test links": ("zh test links", "b" * 36, "links.tsv"),
    }


def test_a_live_run_has_its_place_and_an_import_has_none(
    store: MlflowStore, make_header: MakeHeader, tmp_path: Path
) -> None:
    live = store.client.get_run(store.create_run(make_header(), tmp_path)).data.tags
    assert (
        live["emea.folder"] == str(tmp_path)
        and live["emea.host"] == socket.gethostname()
    )
    imported = store.client.get_run(store.create_run(make_header())).data.tags
    assert not {"emea.folder", "emea.host"} & imported.keys()


def test_results_do_not_join_a_series_of_the_same_name() -> None:
    names = (
        "seconds/evaluate",
        "run/seconds/evaluate",
        "run/final/hit@1",
        "joint/hit@1",
    )
    assert [stored_name(name) for name in names] == [
        "seconds/evaluate",
        "run/seconds/evaluate",
        "final/hit_at_1",
        "joint/hit_at_1",
    ]


def open_fresh(uri: str, both: Barrier, errors: "SimpleQueue[str]") -> None:
    """The work of a process: open a store at the same time as another process."""
    both.wait()
    try:
        MlflowStore(uri).experiment_id("tests")
    except BaseException as error:
        errors.put(repr(error))


def test_two_processes_open_a_fresh_store_together(tmp_path: Path) -> None:
    load_mlflow()
    # forked, because a new process imports MLflow for seconds
    context = get_context("fork")
    both, errors = context.Barrier(2), context.SimpleQueue()
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    processes = [
        context.Process(target=open_fresh, args=(uri, both, errors)) for _ in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=50)
    assert errors.empty(), errors.get()
    names = [found.name for found in MlflowStore(uri).client.search_experiments()]
    assert sorted(names) == ["Default", "tests"]
