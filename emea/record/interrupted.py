"""Runs that MLflow shows as running although their process is gone."""

import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from emea.record.run_lock import LOCK_FILE, is_locked

if TYPE_CHECKING:
    from mlflow import MlflowClient

logger = logging.getLogger(__name__)

FOLDER_TAG, HOST_TAG = "emea.folder", "emea.host"
"""The run folder and the machine of a run, by which its process is found."""

REASON = "interrupted: its process ended without closing the run"


def place_tags(folder: Path) -> dict[str, str]:
    """Return the tags of a run that this machine carries out in a folder."""
    return {FOLDER_TAG: str(folder.resolve()), HOST_TAG: socket.gethostname()}


def close_interrupted(client: "MlflowClient") -> int:
    """Mark runs of this machine as killed if no process works in their folders.

    Returns:
        The number of runs that were marked.
    """
    experiments = [found.experiment_id for found in client.search_experiments()]
    wanted = f"attributes.status = 'RUNNING' and tags.`{HOST_TAG}` = '{socket.gethostname()}'"
    closed = 0
    for run in client.search_runs(experiments, wanted) if experiments else ():
        folder = run.data.tags.get(FOLDER_TAG)
        if folder is None or is_locked(Path(folder) / LOCK_FILE):
            continue
        client.set_tag(run.info.run_id, "emea.reason", REASON)
        client.set_tag(run.info.run_id, "mlflow.note.content", f"**Killed**: {REASON}")
        client.set_terminated(run.info.run_id, "KILLED")
        closed += 1
    if closed:
        logger.info("Marked %d interrupted runs as killed", closed)
    return closed
