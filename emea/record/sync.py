"""Importing the records of run folders into an MLflow store."""

import logging
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from emea.errors import UserError
from emea.record.mlflow_store import MlflowStore
from emea.record.packing import restore_run
from emea.record.run_record import (
    RunClosing,
    RunHeader,
    is_run_folder,
    parsed_closing,
    parsed_header,
    read_closing,
    read_header,
    read_series,
)
from emea.record.store_uri import without_login
from emea.record.study import StudyRun, is_study, read_study
from emea.record.study_files import RUNS_FILE

logger = logging.getLogger(__name__)


NO_END = "the run left no closing record"


@dataclass
class SyncCounts:
    """What became of the run folders that were found."""

    imported: int = 0
    present: int = 0
    unfinished: int = 0
    failed: int = 0

    def __str__(self) -> str:
        """One line for a person."""
        text = (
            f"imported {self.imported}, already there {self.present}, "
            f"skipped {self.unfinished + self.failed}"
        )
        reasons = {"unfinished": self.unfinished, "failed": self.failed}
        told = ", ".join(f"{number} {reason}" for reason, number in reasons.items() if number)
        return f"{text} ({told})" if told else text


def find_run_folders(roots: Iterable[Path | str], exclude: Path | None = None) -> list[Path]:
    """Every run folder at or below the roots, sorted, each once.

    Args:
        roots: Folders to look in.
        exclude: A folder not to look in: MLflow's artifacts hold copies of run folders.

    Raises:
        UserError: If a root does not exist.
    """
    found: set[Path] = set()
    for root in map(Path, roots):
        if not root.is_dir():
            raise UserError(f"{root} is not a folder.")
        for parent, children, _ in os.walk(root.resolve()):
            children[:] = [name for name in children if Path(parent) / name != exclude]
            if is_run_folder(parent):
                found.add(Path(parent))
    return sorted(found)


def find_recorded_runs(roots: Iterable[Path | str]) -> list[StudyRun]:
    """The runs of every study at or below the roots, each once.

    Raises:
        UserError: If a study is damaged.
    """
    walked = (parent for root in roots for parent, _, _ in os.walk(Path(root).resolve()))
    studies = sorted({Path(parent) for parent in walked if is_study(Path(parent))})
    return [run for study in studies for run in read_study(study)]


def sync(
    runs: Iterable[Path | StudyRun], store: MlflowStore, unfinished: bool = False
) -> SyncCounts:
    """Import each run that the store does not hold completely.

    Args:
        runs: Run folders and recorded runs, as `find_run_folders` and `find_recorded_runs` give
            them.
        store: Where to.
        unfinished: Also import runs without a closing record, as KILLED; a later sync replaces
            them when there is more to tell. Not for runs that still go on.
    """
    counts = SyncCounts()
    for run in runs:
        try:
            if isinstance(run, StudyRun):
                outcome = _sync_recorded(run, store)
            else:
                outcome = _sync_one(run, store, unfinished)
        # One damaged folder must not keep the others out.
        except Exception as error:
            place = f"{run.study}, {run.name}" if isinstance(run, StudyRun) else run
            logger.error("%s was not imported: %s", place, without_login(str(error), store.uri))
            outcome = "failed"
        setattr(counts, outcome, getattr(counts, outcome) + 1)
    return counts


def _sync_one(folder: Path, store: MlflowStore, unfinished: bool) -> str:
    header = read_header(folder)
    closing = read_closing(folder)
    if closing is None and not unfinished:
        logger.info("%s is unfinished; --unfinished imports it as KILLED.", folder)
        return "unfinished"
    kept = store.complete_copy(header, closing)
    if kept is not None:
        # What a server made after the run had stopped waiting for it may lie beside.
        store.drop_copies(header, but=kept)
        return "present"
    import_run(folder, header, closing, store)
    return "imported"


def _sync_recorded(run: StudyRun, store: MlflowStore) -> str:
    """Import a run of a study; its files are restored only if the store needs them."""
    path = run.study / RUNS_FILE
    header, closing = parsed_header(run.header, path), parsed_closing(run.header, path)
    kept = store.complete_copy(header, closing)
    if kept is not None:
        store.drop_copies(header, but=kept)
        return "present"
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / run.name
        restore_run(run, folder)
        import_run(folder, header, closing, store)
    return "imported"


def import_run(
    folder: Path, header: RunHeader, closing: RunClosing | None, store: MlflowStore
) -> str:
    """Replay a run's records into the store, in place of any torn copy of it.

    Returns:
        MLflow's id of the run.
    """
    points = read_series(folder)
    run = store.create_run(header)
    store.log_points(run, points)
    end_time = max([header.start_time, *(point.time for point in points)])
    shown = closing or RunClosing("KILLED", end_time, NO_END)
    store.finish_run(run, folder, shown, complete=closing is not None)
    return run
