"""Earlier runs with the same settings, data and code."""

import logging
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from emea.errors import UserError
from emea.record.run_folder import read_metrics, sweep_objective
from emea.record.run_record import (
    FINGERPRINT_TAG,
    LOCK_FILE,
    RUN_FILE,
    RunHeader,
    is_finished,
    is_locked,
    read_header,
)
from emea.record.sync import find_run_folders
from emea.record.tracker import Tracker

logger = logging.getLogger(__name__)


class EarlierRuns(NamedTuple):
    """Holds the folders of two runs with one fingerprint: a finished one and one to resume."""

    finished: Path | None
    unfinished: Path | None


def earlier_runs(fingerprint: str, roots: Iterable[Path]) -> EarlierRuns:
    """Find runs with this fingerprint below roots, which need not exist.

    An unfinished run was interrupted or failed, and no process works in its folder.
    """
    finished, unfinished = None, None
    for folder in find_run_folders(root for root in roots if root.is_dir()):
        try:
            written = (folder / RUN_FILE).stat().st_mtime_ns
            if _fingerprint(folder.resolve(), written) != fingerprint:
                continue
            if is_finished(folder):
                finished = finished or folder
            elif unfinished is None and not is_locked(folder / LOCK_FILE):
                unfinished = folder
        except (UserError, OSError) as error:
            logger.debug("%s is not a usable run folder: %s", folder, error)
    return EarlierRuns(finished, unfinished)


@lru_cache(maxsize=100_000)
def _fingerprint(folder: Path, written: int) -> str | None:
    """Return the fingerprint in a run's header, cached because every job of a sweep asks for it."""
    return read_header(folder).tags.get(FINGERPRINT_TAG)


RUNS = ("multirun", "outputs")
"""Where runs leave their folders, below the working directory."""


class AlreadyRecordedError(Exception):
    """Raised if a finished run with the same fingerprint is recorded.

    Args:
        place: The place of the record.
        objective: The value that a sweeper maximises; NaN if only the place is known.
    """

    def __init__(self, place: str, objective: float = math.nan) -> None:
        self.place = place
        super().__init__(
            f"Already recorded as {place}: skipped. Run it again with skip_recorded=false."
        )
        self.objective = objective


def refuse_recorded(
    header: RunHeader, tracker: Tracker, others: Sequence[Path] = ()
) -> Path | None:
    """Look for an earlier run with the same fingerprint: in run folders and the store.

    Args:
        header: The header of the run that is about to start.
        tracker: The tracker that would record it.
        others: Additional folders with run folders.

    Returns:
        The folder of an interrupted run to resume; ``None`` if there is none.

    Raises:
        AlreadyRecordedError: If an earlier run finished.
    """
    fingerprint = header.tags[FINGERPRINT_TAG]
    earlier = earlier_runs(fingerprint, [*map(Path, RUNS), *others])
    if earlier.finished is not None:
        objective = sweep_objective(read_metrics(earlier.finished))
        raise AlreadyRecordedError(str(earlier.finished), objective)
    found = tracker.recorded(fingerprint)
    if found is not None:
        raise AlreadyRecordedError(f"MLflow run {found}")
    if earlier.unfinished is not None:
        logger.info("Resuming the interrupted run in %s", earlier.unfinished)
    return earlier.unfinished
