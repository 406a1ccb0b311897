"""What a study shows in MLflow: parameters, columns and attributes."""

import json
from pathlib import Path

import pytest

from emea.record.mlflow_store import MlflowStore
from emea.record.mlflow_view import VIEW_TAG, compared_params, save_view
from emea.record.run_record import RunHeader
from emea.record.sync import sync
from emea.record.tracker import NoTracker

from .conftest import MakeHeader

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


@pytest.mark.parametrize(
    "key",
    ["data._target_", "model.optimizer._partial_", "data.root", "tracking.uri", "hydra.job.num"],
)
def test_uninformative_parameters_are_left_out(key: str) -> None:
    assert compared_params({key: "x", "seed": 0}) == {"seed": 0}


def test_what_can_make_a_difference_stays() -> None:
    keys = ("data.name", "em.iterations", "model.encoder.dim", "ratio.value", "studying")
    assert compared_params(dict.fromkeys(keys)) == dict.fromkeys(keys)


def test_groups_that_the_method_does_not_use_are_left_out() -> None:
    groups = {"model.name": "rrea", "em.iterations": 10, "similarity.k": 10, "data.name": "x"}
    prase = groups | {"method.uses": "['model', 'similarity', 'search']"}
    assert set(compared_params(prase)) == {"model.name", "similarity.k", "data.name"}
    assert set(compared_params(groups | {"method.uses": "[]"})) == {"data.name"}
    assert compared_params(groups) == groups


def test_the_columns_of_mlflow_are_filled_in(store: MlflowStore, folders: list[Path]) -> None:
    sync(folders, store)
    runs = {run.info.run_name: run for run in store.client.search_runs([study(store)])}
    run = runs["K=5"]
    assert run.data.tags["mlflow.user"] == "ada"
    assert run.data.tags["mlflow.source.name"] == "emea run data=zh"
    assert run.data.tags["mlflow.source.git.commit"] == "abc"
    assert "ValueError: no" in runs["K=7"].data.tags["mlflow.note.content"]


def test_the_view_has_results_and_what_was_swept(store: MlflowStore, folders: list[Path]) -> None:
    sync(folders, store)
    save_view(store.client, study(store))
    tags = store.client.get_experiment(study(store)).tags
    assert tags["mlflow.experimentKind"] == "custom_model_development"
    state = json.loads(json.loads(tags[VIEW_TAG])["state"])
    assert state["selectedColumns"][:3] == [
        "metrics.`run/initial/hit_at_1`",
        "metrics.`run/final/hit_at_1`",
        "metrics.`run/final/mrr`",
    ]
    # metrics of different protocols are not comparable
    assert state["selectedColumns"][-2:] == ["params.`protocol.name`", "params.`em.num_candidates`"]
    assert state["orderByKey"] == "metrics.`run/final/hit_at_1`"


def study(store: MlflowStore) -> str:
    return store.experiment_id("tests")
