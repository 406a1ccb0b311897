"""What a study shows in MLflow: columns, filled-in attributes, and sweeps with a parent."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from emea.record.mlflow_store import MlflowStore
from emea.record.mlflow_view import SWEEP_PARENT_TAG, VIEW_TAG
from emea.record.run_record import RunHeader
from emea.record.sync import sync
from emea.record.tracker import NoTracker

MakeHeader = Callable[..., RunHeader]
TAGS = {
    "commit": "abc",
    "user": "ada",
    "command": "emea run data=zh",
    "data": "dbp15k_zh",
    "data_checksum": "0123456789",
    "sweep": "day/time",
}


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
    runs = {run.info.run_name: run for run in store.client.search_runs([study(store)])}
    run = runs["K=5"]
    assert run.data.tags["mlflow.user"] == "ada"
    assert run.data.tags["mlflow.source.name"] == "emea run data=zh"
    assert run.data.tags["mlflow.source.git.commit"] == "abc"
    (dataset,) = run.inputs.dataset_inputs
    assert (dataset.dataset.name, dataset.dataset.digest) == ("dbp15k_zh", "0123456789")
    assert "ValueError: no" in runs["K=7"].data.tags["mlflow.note.content"]


def test_a_sweep_has_one_parent_with_its_summary(store: MlflowStore, folders: list[Path]) -> None:
    sync(folders, store)
    sync(folders, store)
    runs = store.client.search_runs([study(store)])
    (parent,) = [run for run in runs if SWEEP_PARENT_TAG in run.data.tags]
    jobs = [run for run in runs if run is not parent]
    assert {run.data.tags["mlflow.parentRunId"] for run in jobs} == {parent.info.run_id}
    assert parent.info.status == "FINISHED"
    note = parent.data.tags["mlflow.note.content"]
    assert "| K=5 | FINISHED | 0.1000 | 0.5000 | 0.5000 |" in note
    assert "| K=7 | FAILED |" in note


def test_the_view_has_results_and_what_was_swept(store: MlflowStore, folders: list[Path]) -> None:
    sync(folders, store)
    tags = store.client.get_experiment(study(store)).tags
    assert tags["mlflow.experimentKind"] == "custom_model_development"
    state = json.loads(json.loads(tags[VIEW_TAG])["state"])
    assert state["selectedColumns"][:3] == [
        "metrics.`run/initial/hit_at_1`",
        "metrics.`run/final/hit_at_1`",
        "metrics.`run/final/mrr`",
    ]
    assert "params.`em.num_candidates`" in state["selectedColumns"]
    assert "params.`rule.name`" in state["selectedColumns"]
    # metrics of different protocols are not comparable
    assert "params.`protocol.name`" in state["selectedColumns"]
    assert state["compareRunCharts"][0]["selectedMetricKeys"] == [
        "neural/hit_at_1",
        "joint/hit_at_1",
    ]


def study(store: MlflowStore) -> str:
    return store.experiment_id("tests")
