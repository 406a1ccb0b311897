"""The runs of a sweep have one parent in MLflow."""

from pathlib import Path
from typing import Any

import pytest

from emea.record.interrupted import close_dead_runs
from emea.record.mlflow_store import MlflowStore
from emea.record.mlflow_sweep import SWEEP_PARENT_TAG, sweep_parent
from emea.record.run_record import RunHeader
from emea.record.sync import sync
from emea.record.tracker import NoTracker

from .conftest import MakeHeader, make_tracker

TAGS = {"sweep": "day/time", "user": "ada"}


@pytest.fixture
def headers(make_header: MakeHeader) -> list[RunHeader]:
    return [make_header(key * 32, name=f"job {key}", tags=TAGS) for key in "ab"]


def parents(store: MlflowStore) -> list[Any]:
    wanted = f"tags.`{SWEEP_PARENT_TAG}` = 'day/time'"
    return list(store.client.search_runs([store.experiment_id("tests")], wanted))


def parent_of(store: MlflowStore, header: RunHeader) -> str:
    [run] = store.find_runs(header)
    return str(run.data.tags["mlflow.parentRunId"])


def test_the_parent_gets_the_tables_of_the_sweep(
    store: MlflowStore, tmp_path: Path, headers: list[RunHeader]
) -> None:
    for header in headers:
        tracker = make_tracker(store.uri)
        tracker.start(header, tmp_path / header.name)
        assert parents(store)[0].info.status == "RUNNING"
        tracker.finish("FINISHED")
    (tmp_path / "results.md").write_text("| the table |")
    (tmp_path / "results.csv").write_text("a,b\n")
    make_tracker(store.uri).finish_sweep("tests", "day/time", tmp_path, "FAILED")
    [parent] = parents(store)
    assert {parent_of(store, header) for header in headers} == {parent.info.run_id}
    assert (parent.info.run_name, parent.info.status) == ("sweep day/time", "FAILED")
    assert parent.data.tags["mlflow.note.content"] == "| the table |"
    assert parent.data.tags["mlflow.user"] == "ada"
    files = {item.path for item in store.client.list_artifacts(parent.info.run_id)}
    assert files == {"results.md", "results.csv"}


def test_parents_that_jobs_created_at_the_same_time_become_one(
    store: MlflowStore, tmp_path: Path, headers: list[RunHeader]
) -> None:
    first, second = headers
    store.create_run(first, tmp_path / "a")
    one = parent_of(store, first)
    # the second job did not see the parent of the first
    experiment = store.experiment_id("tests")
    store.client.set_tag(one, SWEEP_PARENT_TAG, "not yet visible")
    other = sweep_parent(store.client, experiment, second, tmp_path)
    store.create_run(second, tmp_path / "b")
    store.client.set_tag(one, SWEEP_PARENT_TAG, "day/time")
    assert parent_of(store, second) == other != one
    store.finish_sweep("tests", "day/time", tmp_path, "FINISHED")
    [parent] = parents(store)
    assert {parent_of(store, header) for header in headers} == {parent.info.run_id}


def test_an_imported_sweep_has_a_parent_with_a_table_of_its_runs(
    store: MlflowStore, tmp_path: Path, headers: list[RunHeader]
) -> None:
    for hit, header in enumerate(headers):
        tracker = NoTracker()
        tracker.start(header, tmp_path / header.name)
        tracker.log({"run/final/hit@1": hit / 4}, 0)
        tracker.finish("FINISHED")
    folders = [tmp_path / header.name for header in headers]
    assert sync(folders, store)["imported"] == 2
    assert sync(folders, store)["present"] == 2
    [parent] = parents(store)
    lines = parent.data.tags["mlflow.note.content"].splitlines()
    assert lines[2:] == [
        "| job b | FINISHED | n/a | 0.2500 | n/a |",
        "| job a | FINISHED | n/a | 0.0000 | n/a |",
    ]
    assert parent.info.status == "FINISHED"


def test_a_sweep_whose_process_died_is_marked(
    store: MlflowStore, tmp_path: Path, headers: list[RunHeader]
) -> None:
    make_tracker(store.uri).start(headers[0], tmp_path / "job")
    assert close_dead_runs(store.client) == 2
    assert parents(store)[0].info.status == "KILLED"


def test_a_study_without_the_sweep_is_not_created(
    store: MlflowStore, tmp_path: Path
) -> None:
    make_tracker(store.uri).finish_sweep("unknown", "day/time", tmp_path, "FINISHED")
    assert store.client.get_experiment_by_name("unknown") is None
