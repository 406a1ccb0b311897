"""Earlier runs with the same settings, data and code."""

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from emea.errors import UserError
from emea.record.run_folder import read_metrics, sweep_objective
from emea.record.run_record import FINGERPRINT_TAG, RUN_FILE, RunHeader, is_finished, read_header
from emea.record.sync import find_run_folders
from emea.record.tracker import Tracker

logger = logging.getLogger(__name__)


LOCK_FILE = ".running"
"""Held by whoever computes in a run's folder."""


class EarlierRuns(NamedTuple):
    """Folders of one fingerprint's runs: one that finished, one to go on with."""

    finished: Path | None
    unfinished: Path | None


def earlier_runs(fingerprint: str, roots: Iterable[Path]) -> EarlierRuns:
    """Runs with this fingerprint below roots that need not exist.

    Unfinished are those that were interrupted or failed, and that nobody goes on with.
    """
    finished, unfinished = None, None
    for folder, ended in _folders(fingerprint, roots):
        if ended:
            finished = finished or folder
        elif unfinished is None and not is_locked(folder / LOCK_FILE):
            unfinished = folder
    return EarlierRuns(finished, unfinished)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock at this moment."""
    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True


def _folders(fingerprint: str, roots: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Run folders with this fingerprint, and whether they finished."""
    for folder in find_run_folders(root for root in roots if root.is_dir()):
        try:
            written = (folder / RUN_FILE).stat().st_mtime_ns
            if _fingerprint(folder.resolve(), written) != fingerprint:
                continue
            ended = is_finished(folder)
        except (UserError, OSError) as error:
            logger.debug("%s is not a usable run folder: %s", folder, error)
            continue
        yield folder, ended


@lru_cache(maxsize=100_000)
def _fingerprint(folder: Path, written: int) -> str | None:
    """The fingerprint in a run's header; jobs of a sweep ask for the same records again."""
    return read_header(folder).tags.get(FINGERPRINT_TAG)


RECORDS = Path(__file__).resolve().parents[2] / "experiments"
RUNS = ("multirun", "outputs")
"""Where runs leave their folders, from where the command was given."""


class AlreadyRecordedError(Exception):
    """The run is recorded.

    Args:
        place: where to find it.
        objective: what a sweeper may maximise; NaN where only the place is known.
    """

    def __init__(self, place: str, objective: float = math.nan) -> None:
        self.place = place
        super().__init__(f"recorded already as {place}: passed over (skip_recorded=false: again)")
        self.objective = objective


def refuse_recorded(
    header: RunHeader, tracker: Tracker, beside: Sequence[Path] = ()
) -> Path | None:
    """Look for an earlier run that is the same.

    Args:
        header: of the run.
        tracker: where it would be recorded.
        beside: folders to look into beside the usual ones.

    Returns:
        The folder of one that was interrupted, to go on with; ``None``: there is none.

    Raises:
        AlreadyRecordedError: there is one that finished.
    """
    fingerprint = header.tags[FINGERPRINT_TAG]
    earlier = earlier_runs(fingerprint, [*map(Path, RUNS), RECORDS, *beside])
    if earlier.finished is not None:
        raise AlreadyRecordedError(str(earlier.finished), _objective(earlier.finished))
    found = tracker.recorded(fingerprint)
    if found is not None:
        raise AlreadyRecordedError(f"MLflow run {found}")
    if earlier.unfinished is not None:
        logger.info("going on in %s, where it was interrupted", earlier.unfinished)
    return earlier.unfinished


def _objective(folder: Path) -> float:
    return sweep_objective(read_metrics(folder))
