"""The parent run of a sweep in MLflow, which contains the runs of its jobs."""

from pathlib import Path
from typing import TYPE_CHECKING

from emea.record.description import markdown_table
from emea.record.mlflow_view import PAGE, SWEEP_PARENT_TAG
from emea.record.run_record import USER_TAG, RunHeader

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

PARENT_TAG = "mlflow.parentRunId"
NOTE_TAG = "mlflow.note.content"

TABLE_FILE, JOBS_FILE = "results.md", "results.csv"
"""The closing table of a sweep, and a row for each of its jobs."""

MAX_NOTE_LENGTH = 5000
"""The smallest limit of a tag among the versions of MLflow in use."""


def sweep_parent(client: "MlflowClient", experiment_id: str, sweep: str, job: RunHeader) -> str:
    """Return MLflow's id of the parent run of a sweep; the first job creates the run.

    Args:
        client: The MLflow client of the store.
        experiment_id: MLflow's id of the study.
        sweep: Name of the sweep.
        job: One of its runs.
    """
    if not _parents(client, experiment_id, sweep):
        tags = {SWEEP_PARENT_TAG: sweep, "mlflow.source.name": "emea run -m"}
        if USER_TAG in job.tags:
            tags["mlflow.user"] = job.tags[USER_TAG]
        name = f"sweep {sweep}"
        client.create_run(experiment_id, start_time=job.start_time, tags=tags, run_name=name)
    # parallel jobs may have created several parents: all jobs choose the same one
    first, *others = _parents(client, experiment_id, sweep)
    for other in others:
        client.delete_run(other.info.run_id)
    return str(first.info.run_id)


def close_sweep(
    client: "MlflowClient", experiment_id: str, sweep: str, folder: Path | None, status: str
) -> None:
    """Add the summary to the parent run of a sweep, and end the run.

    Args:
        client: The MLflow client of the store.
        experiment_id: MLflow's id of the study.
        sweep: Name of the sweep.
        folder: The folder with the tables of the sweep. With ``None`` the summary is computed from
            the runs.
        status: FINISHED or FAILED.
    """
    found = _parents(client, experiment_id, sweep)
    if not found:
        return
    parent = found[0].info.run_id
    jobs = _runs(client, experiment_id, f"tags.`{PARENT_TAG}` = '{parent}'")
    summary = folder / TABLE_FILE if folder is not None else None
    note = summary.read_text("utf-8") if summary and summary.is_file() else jobs_table(jobs)
    client.set_tag(parent, NOTE_TAG, note[:MAX_NOTE_LENGTH])
    for name in (TABLE_FILE, JOBS_FILE):
        if folder is not None and (folder / name).is_file():
            client.log_artifact(parent, str(folder / name))
    ends = [job.info.end_time for job in jobs if job.info.end_time]
    client.set_terminated(parent, status, max(ends, default=None))


def jobs_table(jobs: "list[Run]") -> str:
    """Return a Markdown table with the results of the runs of a sweep, best first."""
    keys = ("run/initial/hit_at_1", "run/final/hit_at_1", "run/final/mrr")
    ordered = sorted(jobs, key=lambda job: -job.data.metrics.get(keys[1], -1.0))
    rows = [
        [job.info.run_name, job.info.status, *(_shown(job.data.metrics.get(key)) for key in keys)]
        for job in ordered
    ]
    return markdown_table(["run", "status", "initial Hit@1", "final Hit@1", "final MRR"], rows)


def _shown(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.4f}"


def _parents(client: "MlflowClient", experiment_id: str, sweep: str) -> "list[Run]":
    runs = _runs(client, experiment_id, f"tags.`{SWEEP_PARENT_TAG}` = '{sweep}'")
    return sorted(runs, key=lambda run: run.info.run_id)


def _runs(client: "MlflowClient", experiment_id: str, wanted: str) -> "list[Run]":
    return list(client.search_runs([experiment_id], wanted, max_results=PAGE))
