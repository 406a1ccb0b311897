"""Finds run folders, and imports them into an MLflow store."""

import logging
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from emea.errors import UserError
from emea.record.interrupted import close_dead_folder
from emea.record.mlflow_store import MlflowStore
from emea.record.run_record import (
    SWEEP_TAG,
    RunHeader,
    check_series,
    is_run_folder,
    read_header,
    read_series,
)
from emea.record.store_uri import without_login

logger = logging.getLogger(__name__)

RUNS = ("multirun", "outputs")
"""Where runs leave their folders, below the working directory."""

STORE_FOLDERS = ("artifacts", "mlartifacts", "mlruns")
"""Folders in which MLflow keeps its copies of the files of runs."""


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


def sync(folders: Iterable[Path], store: MlflowStore) -> Counter[str]:
    """Import each run that has ended and is missing or incomplete in the store.

    Args:
        folders: Run folders, as `find_run_folders` returns them.
        store: The store to import into.

    Returns:
        The number of runs that were imported, present, unfinished and failed.
    """
    counts = Counter[str]()
    sweeps: dict[tuple[str, str], Path] = {}
    for folder in folders:
        try:
            outcome = _sync_one(folder, store)
            if outcome == "imported":
                sweeps |= _sweep_of(read_header(folder), folder)
        # one damaged folder must not stop the import of the others
        except Exception as error:
            logger.error(
                "%s was not imported: %s", folder, without_login(str(error), store.uri)
            )
            outcome = "failed"
        counts[outcome] += 1
    for (study, sweep), folder in sweeps.items():
        try:
            store.finish_sweep(study, sweep, folder, "FINISHED")
        # the runs are imported; only their table is missing
        except Exception as error:
            reason = without_login(str(error), store.uri)
            logger.error("The table of sweep %s was not imported: %s", sweep, reason)
    return counts


def _sweep_of(header: RunHeader, folder: Path) -> dict[tuple[str, str], Path]:
    """Return the folder of the sweep of a run by study and name; empty for a single run."""
    if SWEEP_TAG not in header.tags:
        return {}
    return {(header.experiment, header.tags[SWEEP_TAG]): folder.parent}


def _sync_one(folder: Path, store: MlflowStore) -> str:
    header = read_header(folder)
    closing = close_dead_folder(folder)
    if closing is None:
        logger.info("%s is unfinished.", folder)
        return "unfinished"
    if store.has_copy(header, closing):
        return "present"
    points = read_series(folder)
    check_series(folder, points)
    run = store.create_run(header)
    store.log_points(run, points)
    store.finish_run(run, folder, closing)
    return "imported"
