"""Closes the records of runs whose process is gone, in their folders and in MLflow."""

import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from emea.errors import UserError
from emea.record.run_record import (
    LOCK_FILE,
    RunClosing,
    close_record,
    is_run_folder,
    now_ms,
    read_closing,
    read_header,
    read_series,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

logger = logging.getLogger(__name__)

FOLDER_TAG, HOST_TAG = "emea.folder", "emea.host"
"""The run folder and the machine of a run, by which its process is found."""

RUN_ID_TAG, REASON_TAG = "emea.run_id", "emea.reason"
NOTE_TAG = "mlflow.note.content"
"""The tag that MLflow shows as the description of a run."""

INTERRUPTED = "interrupted: its process ended without closing the run"


def place_tags(folder: Path) -> dict[str, str]:
    """Return the tags of a run that this machine carries out in a folder."""
    return {FOLDER_TAG: str(folder.resolve()), HOST_TAG: socket.gethostname()}


def is_locked(lock: Path) -> bool:
    """Return whether a process holds a lock; a missing lock file is not held."""
    from filelock import (
        FileLock,
        Timeout,
    )  # not needed by commands that only read records

    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except (Timeout, OSError):
        return True


def close_dead_folder(folder: Path) -> RunClosing | None:
    """Mark the run in a folder as killed if its process is gone.

    Returns:
        The end of the run; ``None`` if it is running, or if its record cannot be written.

    Raises:
        UserError: If the record of the run is damaged.
    """
    from filelock import (
        FileLock,
        Timeout,
    )  # not needed by commands that only read records

    closing = read_closing(folder)
    # only a run that has started in this folder leaves a lock; a copy of its files has none
    if closing is not None or not (folder / LOCK_FILE).exists():
        return closing
    try:
        with FileLock(folder / LOCK_FILE, timeout=0):
            closing = read_closing(folder)
            if closing is None:
                # the time of the last record
                times = [point.time for point in read_series(folder)]
                last = max([read_header(folder).start_time, *times])
                closing = close_record(folder, "KILLED", INTERRUPTED, end_time=last)
            return closing
    except (Timeout, OSError):
        return None


def close_dead_runs(client: "MlflowClient") -> int:
    """End the runs that a store shows as running although this machine no longer runs them.

    A run that is still running holds the lock of its folder. Runs of other machines are left
    unchanged.

    Returns:
        The number of runs that were ended.
    """
    experiments = [found.experiment_id for found in client.search_experiments()]
    if not experiments:
        return 0
    host = socket.gethostname()
    wanted = f"attributes.status = 'RUNNING' and tags.`{HOST_TAG}` = '{host}'"
    closed = sum(
        _close_dead_run(client, run) for run in client.search_runs(experiments, wanted)
    )
    if closed:
        logger.info("Marked %d interrupted runs", closed)
    return closed


def _close_dead_run(client: "MlflowClient", run: "Run") -> bool:
    folder = Path(run.data.tags[FOLDER_TAG])
    if is_locked(folder / LOCK_FILE):
        return False
    closing = _end_of(folder, run.data.tags.get(RUN_ID_TAG, ""))
    client.set_tag(run.info.run_id, REASON_TAG, closing.reason)
    client.set_tag(run.info.run_id, NOTE_TAG, f"**Incomplete**: {closing.reason}")
    client.set_terminated(run.info.run_id, closing.status, closing.end_time)
    return True


def _end_of(folder: Path, run_id: str) -> RunClosing:
    """Return how a run ended whose process is gone, as far as its folder shows it."""
    killed = RunClosing("KILLED", now_ms(), INTERRUPTED)
    if not is_run_folder(folder):
        return killed
    try:
        # another run may have replaced it in the same folder
        if read_header(folder).run_id != run_id:
            return killed
        closing = close_dead_folder(folder)
    except UserError as error:
        logger.warning("%s", error)
        return killed
    if closing is None or closing.reason == INTERRUPTED:
        return closing or killed
    missed = f"MLflow missed the end of the run. `emea sync {folder}` imports it."
    return RunClosing(closing.status, closing.end_time, missed)
