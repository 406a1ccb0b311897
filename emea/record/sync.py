"""Imports run folders into an MLflow store."""

import logging
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from emea.errors import UserError
from emea.record.mlflow_store import MlflowStore
from emea.record.run_record import (
    LOCK_FILE,
    RunClosing,
    close_record,
    is_run_folder,
    read_closing,
    read_header,
    read_series,
)
from emea.record.store_uri import without_login

logger = logging.getLogger(__name__)

STORE_FOLDERS = ("artifacts", "mlartifacts", "mlruns")
"""Folders in which MLflow keeps its copies of the files of runs."""

INTERRUPTED = "interrupted: its process ended without closing the run"
NO_END = "the run left no closing record"


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


def sync(folders: Iterable[Path], store: MlflowStore, unfinished: bool = False) -> Counter[str]:
    """Import each run that is missing or incomplete in the store.

    Args:
        folders: Run folders, as `find_run_folders` returns them.
        store: The store to import into.
        unfinished: Also import runs without a closing record, as KILLED; a later sync replaces
            them when they have ended. Not for runs that are still running.

    Returns:
        The number of runs that were imported, present, unfinished and failed.
    """
    counts = Counter[str]()
    for folder in folders:
        try:
            outcome = _sync_one(folder, store, unfinished)
        # one damaged folder must not stop the import of the others
        except Exception as error:
            logger.error("%s was not imported: %s", folder, without_login(str(error), store.uri))
            outcome = "failed"
        counts[outcome] += 1
    return counts


def _sync_one(folder: Path, store: MlflowStore, unfinished: bool) -> str:
    header = read_header(folder)
    closing = close_dead_folder(folder)
    if closing is None and not unfinished:
        logger.info("%s is unfinished; --unfinished imports it as KILLED.", folder)
        return "unfinished"
    closing = closing or RunClosing("KILLED", _last_time(folder), NO_END)
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
                last = _last_time(folder)
                closing = close_record(folder, "KILLED", INTERRUPTED, end_time=last)
            return closing
    except (Timeout, OSError):
        return None


def _last_time(folder: Path) -> int:
    """Return the time of the last record of an unfinished run."""
    return max([read_header(folder).start_time, *(point.time for point in read_series(folder))])
