"""Imports the records of run folders and studies into an MLflow store."""

import logging
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from emea.errors import UserError
from emea.record.interrupted import close_dead_folder
from emea.record.mlflow_params import compared_params
from emea.record.mlflow_store import MlflowStore
from emea.record.packing import restore_run
from emea.record.run_name import run_name, swept_values
from emea.record.run_record import (
    SWEEP_TAG,
    USER_TAG,
    RunClosing,
    RunHeader,
    is_run_folder,
    parsed_closing,
    parsed_header,
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
    """Counts the runs that were imported and those that were not, by reason."""

    imported: int = 0
    present: int = 0
    unfinished: int = 0
    failed: int = 0

    def __str__(self) -> str:
        """Return the counts as one line of text."""
        text = (
            f"imported {self.imported}, already there {self.present}, "
            f"skipped {self.unfinished + self.failed}"
        )
        reasons = {"unfinished": self.unfinished, "failed": self.failed}
        skipped = ", ".join(f"{number} {reason}" for reason, number in reasons.items() if number)
        return f"{text} ({skipped})" if skipped else text


def find_run_folders(roots: Iterable[Path | str], exclude: Path | None = None) -> list[Path]:
    """Return every run folder at or below the roots, sorted, each once.

    Args:
        roots: Folders to look in.
        exclude: A folder to skip, such as MLflow's artifacts, which contain copies of run folders.

    Raises:
        UserError: If a root does not exist.
    """
    found: set[Path] = set()
    for root in map(Path, roots):
        if not root.is_dir():
            raise UserError(f"{root} is not a folder. Check the path.")
        for parent, children, _ in os.walk(root.resolve()):
            children[:] = [name for name in children if Path(parent) / name != exclude]
            if is_run_folder(parent):
                found.add(Path(parent))
    return sorted(found)


def find_recorded_runs(roots: Iterable[Path | str]) -> list[StudyRun]:
    """Return the runs of every study at or below the roots, each once.

    Raises:
        UserError: If a study is damaged.
    """
    walked = (parent for root in roots for parent, _, _ in os.walk(Path(root).resolve()))
    studies = sorted({Path(parent) for parent in walked if is_study(Path(parent))})
    return [run for study in studies for run in read_study(study)]


def sync(
    runs: Iterable[Path | StudyRun], store: MlflowStore, unfinished: bool = False
) -> SyncCounts:
    """Import each run that is missing or incomplete in the store.

    Args:
        runs: Run folders and recorded runs, as `find_run_folders` and `find_recorded_runs` return
            them.
        store: The store to import into.
        unfinished: Also import runs without a closing record, as KILLED; a later sync replaces
            them when they have ended. Not for runs that are still running.
    """
    counts, runs = SyncCounts(), list(runs)
    names = _names_of_older_runs(runs)
    imported: list[tuple[Path | None, RunHeader]] = []
    for run in runs:
        try:
            header = _header(run)
            header = replace(header, name=names.get(header.run_id, header.name))
            if isinstance(run, StudyRun):
                outcome = _sync_recorded(run, header, store)
            else:
                outcome = _sync_one(run, header, store, unfinished)
            if outcome == "imported":
                imported.append((run.parent if isinstance(run, Path) else None, header))
        # one damaged folder must not stop the import of the others
        except Exception as error:
            place = f"{run.study}, {run.name}" if isinstance(run, StudyRun) else run
            logger.error("%s was not imported: %s", place, without_login(str(error), store.uri))
            outcome = "failed"
        setattr(counts, outcome, getattr(counts, outcome) + 1)
    _finish_studies(imported, store)
    return counts


def _header(run: Path | StudyRun) -> RunHeader:
    if isinstance(run, StudyRun):
        return parsed_header(run.header, run.study / RUNS_FILE)
    return read_header(run)


def _sync_one(folder: Path, header: RunHeader, store: MlflowStore, unfinished: bool) -> str:
    closing = close_dead_folder(folder)
    if closing is None and not unfinished:
        logger.info("%s is unfinished; --unfinished imports it as KILLED.", folder)
        return "unfinished"
    if _is_present(header, closing, store):
        return "present"
    import_run(folder, header, closing, store)
    return "imported"


def _sync_recorded(run: StudyRun, header: RunHeader, store: MlflowStore) -> str:
    """Import a run of a study; its files are restored only if the store needs them."""
    closing = parsed_closing(run.header, run.study / RUNS_FILE)
    if _is_present(header, closing, store):
        return "present"
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / run.name
        restore_run(run, folder)
        import_run(folder, header, closing, store)
    return "imported"


def _is_present(header: RunHeader, closing: RunClosing | None, store: MlflowStore) -> bool:
    kept = store.complete_copy(header, closing)
    if kept is not None:
        # the server may have created another copy after the run stopped waiting for it
        store.drop_copies(header, but=kept)
    return kept is not None


def _names_of_older_runs(runs: Sequence[Path | StudyRun]) -> dict[str, str]:
    """Return new names, by id, for runs of versions whose names lacked the varied settings.

    The varied settings are found among the runs of the same study that are imported together.
    """
    by_study: dict[str, list[RunHeader]] = {}
    for run in runs:
        try:
            header = _header(run)
        except UserError:
            continue  # the import reports the error
        if USER_TAG not in header.tags and "method.name" in header.params:
            by_study.setdefault(header.experiment, []).append(header)
    names: dict[str, str] = {}
    for headers in by_study.values():
        swept = swept_values([compared_params(header.params) for header in headers])
        for header, values in zip(headers, swept, strict=True):
            names[header.run_id] = run_name(header.params, values)
    return names


def _finish_studies(imported: Sequence[tuple[Path | None, RunHeader]], store: MlflowStore) -> None:
    """Close the parent runs of imported sweeps, and let the UI open on the results."""
    sweeps = {
        (header.experiment, header.tags[SWEEP_TAG]): folder
        for folder, header in imported
        if SWEEP_TAG in header.tags
    }
    for (experiment, sweep), folder in sweeps.items():
        store.finish_sweep(experiment, sweep, folder, "FINISHED")
    for experiment in {header.experiment for _, header in imported}:
        store.save_view(experiment)


def import_run(
    folder: Path, header: RunHeader, closing: RunClosing | None, store: MlflowStore
) -> str:
    """Copy a run's records into the store; an incomplete copy is replaced.

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
