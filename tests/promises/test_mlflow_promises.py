"""What a sweep leaves in MLflow: `mlflow.txt` lists every name, so that a loss is noticed.

After an intended change, run this file as a program to write the list again, and name what users
can no longer see in CHANGELOG.md.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emea.record.mlflow_store import MlflowStore, open_client, stored_name
from emea.record.run_record import read_series

from ..sweeping import TINY, called_here

pytestmark = pytest.mark.slow

PROMISED = Path(__file__).with_name("mlflow.txt")

MACHINE = ("tag gpu",)
"""Entries that only some machines have."""


def sweep(folder: Path) -> None:
    """Record a sweep of two jobs in the store of a folder."""
    settings = [
        *TINY,
        "data=synthetic",
        "ratio=0.1,0.2",
        "tracking.uri=sqlite:///mlflow.db",
    ]
    known = {"EMEA_COMMIT": "0" * 40, "LOGNAME": "ada"}
    done = called_here(
        folder, "-m", *settings, "hydra.sweep.dir=multirun/day/time", **known
    )
    assert done.returncode == 0, done.stderr


def stored_runs(folder: Path) -> list[Any]:
    """The parent of a sweep, then its jobs in the order of their names."""
    store = MlflowStore(f"sqlite:///{folder}/mlflow.db")
    found = store.client.search_runs([store.experiment_id("emea")])
    return sorted(
        found,
        key=lambda run: (not run.info.run_name.startswith("sweep"), run_name(run)),
    )


def run_name(run: Any) -> str:
    return str(run.info.run_name)


def entries(folder: Path) -> list[str]:
    """Every name that a job and its sweep have in MLflow, one in a line."""
    parent, job, _ = stored_runs(folder)
    lines = {f"sweep {line}" for line in entries_of(folder, parent)}
    return sorted((lines | set(entries_of(folder, job))) - set(MACHINE))


def entries_of(folder: Path, run: Any) -> Iterator[str]:
    yield from (f"param {name}" for name in run.data.params)
    yield from (f"metric {name}" for name in run.data.metrics)
    yield from (f"tag {name}" for name in run.data.tags)
    for one in run.inputs.dataset_inputs:
        [role] = [tag.value for tag in one.tags if tag.key == "mlflow.data.context"]
        assert one.dataset.digest and json.loads(one.dataset.source)["uri"]
        for size in json.loads(one.dataset.profile):
            yield f"input {role}: {size}"
    files = Path(
        MlflowStore(f"sqlite:///{folder}/mlflow.db").client.download_artifacts(
            run.info.run_id, ""
        )
    )
    for path in files.rglob("*"):
        if path.is_file():
            yield f"artifact {path.relative_to(files).as_posix()}"


@pytest.fixture(scope="module")
def recorded(store_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    shutil.copy(store_template, folder / "mlflow.db")
    sweep(folder)
    return folder


def test_mlflow_has_everything_that_is_promised(recorded: Path) -> None:
    found, promised = set(entries(recorded)), set(PROMISED.read_text().splitlines())
    assert not promised - found, "MLflow lost these"
    assert not found - promised, f"new entries: add them to {PROMISED.name}"


def test_the_jobs_of_a_sweep_are_nested_and_described(recorded: Path) -> None:
    parent, *jobs = stored_runs(recorded)
    assert [run_name(run) for run in jobs] == [
        "10% synthetic rrea s0",
        "20% synthetic rrea s0",
    ]
    assert {run.data.tags["mlflow.parentRunId"] for run in jobs} == {parent.info.run_id}
    assert {run.info.status for run in (parent, *jobs)} == {"FINISHED"}
    # the table of the sweep has the scores of both jobs
    table = parent.data.tags["mlflow.note.content"]
    for run in jobs:
        assert f"{run.data.metrics['final/hit_at_1']:.4f}" in table
        note = run.data.tags["mlflow.note.content"]
        assert (
            "| test targets | before EM |" in note
            and "| all targets | after EM |" in note
        )
        assert run.data.tags["command"] in note


def test_each_metric_has_one_meaning(recorded: Path) -> None:
    _, job, _ = stored_runs(recorded)
    folder = Path(job.data.tags["emea.folder"])
    names = {name for point in read_series(folder) for name in point.metrics}
    assert len({stored_name(name) for name in names}) == len(names)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        open_client(f"sqlite:///{place}/mlflow.db")
        sweep(Path(place))
        PROMISED.write_text("\n".join(entries(Path(place))) + "\n")
    sys.exit()
