"""Closes the records of runs whose process is gone, in their folders and in MLflow."""

import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from emea.errors import UserError
from emea.record.mlflow_sweep import PARENT_TAG
from emea.record.mlflow_view import PAGE, SWEEP_PARENT_TAG
from emea.record.run_lock import LOCK_FILE, is_locked
from emea.record.run_record import (
    RunClosing,
    RunRecord,
    is_run_folder,
    read_closing,
    read_header,
    read_series,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient

logger = logging.getLogger(__name__)

FOLDER_TAG, HOST_TAG = "emea.folder", "emea.host"
"""The run folder and the machine of a run, by which its process is found."""

REASON = "interrupted: its process ended without closing the run"


def place_tags(folder: Path) -> dict[str, str]:
    """Return the tags of a run that this machine carries out in a folder."""
    return {FOLDER_TAG: str(folder.resolve()), HOST_TAG: socket.gethostname()}


def close_dead_folder(folder: Path) -> RunClosing | None:
    """Mark the run in a folder as killed if its process is gone.

    Args:
        folder: The folder of a run.

    Returns:
        The end of the run; ``None`` if it is running, or if its record cannot be written.

    Raises:
        UserError: If the record of the run is damaged.
    """
    from filelock import FileLock, Timeout  # not needed by commands that only read records

    closing = read_closing(folder)
    # only a run that has started in this folder leaves a lock; a copy of its files has none
    if closing is not None or not (folder / LOCK_FILE).exists():
        return closing
    try:
        with FileLock(folder / LOCK_FILE, timeout=0):
            closing = read_closing(folder)
            if closing is None:
                last = max([read_header(folder).start_time, *(p.time for p in read_series(folder))])
                closing = RunRecord(folder).close("KILLED", REASON, end_time=last)
            return closing
    except (Timeout, OSError):
        return None


def close_interrupted(client: "MlflowClient") -> int:
    """Mark runs of this machine as killed if no process works in their folders.

    Their folders and the parent runs of their sweeps are marked, too.

    Returns:
        The number of runs that were marked, without parent runs.
    """
    experiments = [found.experiment_id for found in client.search_experiments()]
    if not experiments:
        return 0
    wanted = f"attributes.status = 'RUNNING' and tags.`{HOST_TAG}` = '{socket.gethostname()}'"
    closed = 0
    for run in client.search_runs(experiments, wanted):
        folder = run.data.tags.get(FOLDER_TAG)
        if folder is None or is_locked(Path(folder) / LOCK_FILE):
            continue
        if is_run_folder(folder):
            try:
                close_dead_folder(Path(folder))
            except UserError as error:
                logger.warning("%s", error)
        client.set_tag(run.info.run_id, "emea.reason", REASON)
        client.set_tag(run.info.run_id, "mlflow.note.content", f"**Killed**: {REASON}")
        client.set_terminated(run.info.run_id, "KILLED")
        closed += 1
    if closed:
        logger.info("Marked %d interrupted runs as killed", closed)
    _close_sweeps(client, experiments)
    return closed


def _close_sweeps(client: "MlflowClient", experiments: list[str]) -> None:
    """Mark running parents of sweeps as killed if a job was killed and none is running.

    A job that is killed ends its sweep, because both share a process.
    """
    for parent in client.search_runs(experiments, "attributes.status = 'RUNNING'"):
        if SWEEP_PARENT_TAG not in parent.data.tags:
            continue
        jobs = client.search_runs(
            [parent.info.experiment_id],
            f"tags.`{PARENT_TAG}` = '{parent.info.run_id}'",
            max_results=PAGE,
        )
        states = {job.info.status for job in jobs}
        if "KILLED" in states and "RUNNING" not in states:
            client.set_terminated(parent.info.run_id, "KILLED")
