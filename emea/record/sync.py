"""Finds run folders: earlier runs that are equal, and runs to import into an MLflow store."""

import logging
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from emea.errors import UserError
from emea.record.mlflow_store import MlflowStore
from emea.record.run_folder import read_metrics, sweep_objective
from emea.record.run_record import (
    FINGERPRINT_TAG,
    LOCK_FILE,
    RunClosing,
    RunHeader,
    close_record,
    is_finished,
    is_run_folder,
    read_closing,
    read_header,
    read_series,
)
from emea.record.store_uri import without_login

logger = logging.getLogger(__name__)

RUNS = ("multirun", "outputs")
"""Where runs leave their folders, below the working directory."""

STORE_FOLDERS = ("artifacts", "mlartifacts", "mlruns")
"""Folders in which MLflow keeps its copies of the files of runs."""

INTERRUPTED = "interrupted: its process ended without closing the run"


def find_run_folders(roots: Iterable[Path | str]) -> list[Path]:
    """Return every run folder at or below the roots, sorted, each once; not the copies of MLflow.

    Raises:
        UserError: If a root does not exist.
    """
    found: set[Path] = set()
    for root in map(Path, roots):
        if not root.is_dir():
            raise UserError(f"{root} is not a folder. Check the path.")
        for parent, children, _ in os.walk(root.resolve()):
            children[:] = [name for name in children if name not in STORE_FOLDERS]
            if is_run_folder(parent):
                found.add(Path(parent))
    return sorted(found)


def finished_run(fingerprint: str, roots: Iterable[Path]) -> Path | None:
    """Return a finished run with this fingerprint below roots, which need not exist."""
    for folder in find_run_folders(root for root in roots if root.is_dir()):
        try:
            if read_header(folder).tags.get(FINGERPRINT_TAG) == fingerprint and is_finished(folder):
                return folder
        except (UserError, OSError) as error:
            logger.debug("%s is not a usable run folder: %s", folder, error)
    return None


class AlreadyRecordedError(Exception):
    """Raised if the same run is recorded: its place, and the value that a sweeper maximises."""

    def __init__(self, place: str, objective: float) -> None:
        super().__init__(
            f"Already recorded as {place}: skipped. Run it again with skip_recorded=false."
        )
        self.place = place
        self.objective = objective


def refuse_recorded(header: RunHeader, others: Sequence[Path] = ()) -> None:
    """Look for an earlier run with the same fingerprint in run folders.

    Args:
        header: The header of the run that is about to start.
        others: Additional folders with run folders.

    Raises:
        AlreadyRecordedError: If an earlier run finished.
    """
    found = finished_run(header.tags[FINGERPRINT_TAG], [*map(Path, RUNS), *others])
    if found is not None:
        raise AlreadyRecordedError(str(found), sweep_objective(read_metrics(found)))


def sync(folders: Iterable[Path], store: MlflowStore) -> Counter[str]:
    """Import each run that has ended and is missing or incomplete in the store.

    Args:
        folders: Run folders, as `find_run_folders` returns them.
        store: The store to import into.

    Returns:
        The number of runs that were imported, present, unfinished and failed.
    """
    counts = Counter[str]()
    for folder in folders:
        try:
            outcome = _sync_one(folder, store)
        # one damaged folder must not stop the import of the others
        except Exception as error:
            logger.error("%s was not imported: %s", folder, without_login(str(error), store.uri))
            outcome = "failed"
        counts[outcome] += 1
    return counts


def _sync_one(folder: Path, store: MlflowStore) -> str:
    header, closing = read_header(folder), close_dead_folder(folder)
    if closing is None:
        logger.info("%s is unfinished.", folder)
        return "unfinished"
    if store.has_copy(header, closing):
        return "present"
    run = store.create_run(header)
    store.log_points(run, read_series(folder))
    store.finish_run(run, folder, closing)
    return "imported"


def close_dead_folder(folder: Path) -> RunClosing | None:
    """Mark the run in a folder as killed if its process is gone.

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
                # the time of the last record
                times = [point.time for point in read_series(folder)]
                last = max([read_header(folder).start_time, *times])
                closing = close_record(folder, "KILLED", INTERRUPTED, end_time=last)
            return closing
    except (Timeout, OSError):
        return None
