"""The parent run of a sweep in MLflow, under which the runs of its jobs are nested."""

from pathlib import Path
from typing import TYPE_CHECKING

from emea.evaluation.metric_table import TRACKED
from emea.record.description import shown_number
from emea.record.interrupted import NOTE_TAG, place_tags
from emea.record.markdown import markdown_table
from emea.record.run_record import SWEEP_TAG, USER_TAG, RunHeader

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

PARENT_TAG = "mlflow.parentRunId"

SWEEP_PARENT_TAG = "emea.sweep"
"""The tag of a parent run: the name of its sweep, which its jobs have as the tag ``sweep``."""

TABLE_FILE, JOBS_FILE = "results.md", "results.csv"
"""The closing table of a sweep, and a row for each of its jobs."""

MAX_NOTE_LENGTH = 5000
"""The smallest limit of a tag among the versions of MLflow in use."""

SCORES = {column.title: column.in_mlflow for column in TRACKED}
"""Titles and metrics of the table that is made from the runs if the sweep left none."""


def sweep_parent(
    client: "MlflowClient", experiment_id: str, job: RunHeader, folder: Path | None
) -> str:
    """Return MLflow's id of the parent run of a sweep; the first job creates it.

    Two jobs that start at the same time may create two parents. `close_sweep` joins them.

    Args:
        client: The MLflow client of the store.
        experiment_id: MLflow's id of the study.
        job: The header of a job of the sweep.
        folder: The folder of the sweep if it is running; ``None`` for an import.
    """
    sweep = job.tags[SWEEP_TAG]
    found = _parents(client, experiment_id, sweep)
    if found:
        return str(found[0].info.run_id)
    tags = {SWEEP_PARENT_TAG: sweep, "mlflow.source.name": "emea run -m"}
    if folder is not None:
        tags |= place_tags(folder)
    if USER_TAG in job.tags:
        tags["mlflow.user"] = job.tags[USER_TAG]
    run = client.create_run(
        experiment_id, start_time=job.start_time, tags=tags, run_name=f"sweep {sweep}"
    )
    return str(run.info.run_id)


def close_sweep(
    client: "MlflowClient",
    experiment_id: str,
    sweep: str,
    folder: Path | None,
    status: str,
) -> None:
    """Add the summary of a sweep to its parent run, and end the run.

    Args:
        client: The MLflow client of the store.
        experiment_id: MLflow's id of the study.
        sweep: Name of the sweep.
        folder: The folder with the tables of the sweep; ``None`` if only its runs are known.
        status: FINISHED, FAILED or KILLED.
    """
    found = _parents(client, experiment_id, sweep)
    if not found:
        return
    parent, *duplicates = (run.info.run_id for run in found)
    jobs = list(client.search_runs([experiment_id], f"tags.`{SWEEP_TAG}` = '{sweep}'"))
    for job in jobs:
        if job.data.tags.get(PARENT_TAG) != parent:
            client.set_tag(job.info.run_id, PARENT_TAG, parent)
    for duplicate in duplicates:
        client.delete_run(duplicate)
    client.set_tag(parent, NOTE_TAG, _summary(jobs, folder)[:MAX_NOTE_LENGTH])
    for name in (TABLE_FILE, JOBS_FILE):
        if folder is not None and (folder / name).is_file():
            client.log_artifact(parent, str(folder / name))
    ends = [job.info.end_time for job in jobs if job.info.end_time]
    client.set_terminated(parent, status, max(ends, default=None))


def _summary(jobs: "list[Run]", folder: Path | None) -> str:
    """Return the table that the sweep wrote, or one of its runs, the best first."""
    written = None if folder is None else folder / TABLE_FILE
    if written is not None and written.is_file():
        return written.read_text("utf-8")
    best_first = sorted(
        jobs, key=lambda job: -job.data.metrics.get(SCORES["final Hit@1"], -1.0)
    )
    rows = []
    for job in best_first:
        scores = [shown_number(job.data.metrics.get(name)) for name in SCORES.values()]
        rows.append([job.info.run_name, job.info.status, *scores])
    return markdown_table(["run", "status", *SCORES], rows)


def _parents(client: "MlflowClient", experiment_id: str, sweep: str) -> "list[Run]":
    """Return the parent runs of a sweep in an order that is the same for all its jobs."""
    found = client.search_runs(
        [experiment_id], f"tags.`{SWEEP_PARENT_TAG}` = '{sweep}'"
    )
    return sorted(found, key=lambda run: str(run.info.run_id))
