"""Earlier runs with the same settings, data and code: finished ones, and one to continue."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from emea.errors import UserError
from emea.record.file_names import CHECKPOINT_FILE
from emea.record.interrupted import is_locked
from emea.record.run_folder import read_metrics, sweep_objective
from emea.record.run_record import (
    FINGERPRINT_TAG,
    LOCK_FILE,
    RUN_FILE,
    RunHeader,
    is_finished,
    read_header,
)
from emea.record.sync import RUNS, find_run_folders
from emea.record.tracker import Tracker

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EarlierRuns:
    """The folders of two runs with one fingerprint.

    Args:
        finished: A run that finished; ``None`` if there is none.
        interrupted: A run that can be continued; ``None`` if there is none.
    """

    finished: Path | None = None
    interrupted: Path | None = None


class AlreadyRecordedError(Exception):
    """Raised if the same run is recorded: its place, and its numbers as in ``metrics.json``."""

    def __init__(self, place: str, metrics: Mapping[str, Any]) -> None:
        super().__init__(
            f"Already recorded as {place}: skipped. Run it again with skip_recorded=false."
        )
        self.place = place
        self.metrics = dict(metrics)

    @property
    def objective(self) -> float:
        """The value that a sweeper maximises; NaN if the numbers are not known."""
        return sweep_objective(self.metrics)


def refuse_recorded(
    header: RunHeader, folder: Path, tracker: Tracker, others: Sequence[Path] = ()
) -> Path | None:
    """Look for an earlier run with the same fingerprint, in run folders and then in the store.

    Args:
        header: The header of the run that is about to start.
        folder: The folder of that run.
        tracker: The tracker that would record it.
        others: Folders to search in addition to those of ``RUNS``.

    Returns:
        The folder of an interrupted run to continue; ``None`` if there is none.

    Raises:
        AlreadyRecordedError: If an earlier run finished.
    """
    fingerprint = header.tags[FINGERPRINT_TAG]
    earlier = earlier_runs(fingerprint, [*map(Path, RUNS), *others])
    if earlier.finished is not None:
        raise AlreadyRecordedError(
            str(earlier.finished), read_metrics(earlier.finished)
        )
    stored = tracker.recorded(fingerprint, folder)
    if stored is not None:
        raise AlreadyRecordedError(stored.place, stored.metrics)
    if earlier.interrupted is not None:
        logger.info("Continuing the interrupted run in %s", earlier.interrupted)
    return earlier.interrupted


def earlier_runs(fingerprint: str, roots: Iterable[Path]) -> EarlierRuns:
    """Find runs with this fingerprint below roots, which need not exist.

    An interrupted run has a checkpoint, and no process works in its folder.
    """
    interrupted: Path | None = None
    for folder, has_finished in _runs_with(fingerprint, roots):
        if has_finished:
            return EarlierRuns(finished=folder)
        can_continue = (folder / CHECKPOINT_FILE).is_file()
        if interrupted is None and can_continue and not is_locked(folder / LOCK_FILE):
            interrupted = folder
    return EarlierRuns(interrupted=interrupted)


def _runs_with(fingerprint: str, roots: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the run folders with this fingerprint, and whether their runs finished."""
    for folder in find_run_folders(root for root in roots if root.is_dir()):
        try:
            written = (folder / RUN_FILE).stat().st_mtime_ns
            if _fingerprint_of(folder, written) == fingerprint:
                yield folder, is_finished(folder)
        except (UserError, OSError) as error:
            logger.debug("%s is not a usable run folder: %s", folder, error)


@lru_cache(maxsize=100_000)
def _fingerprint_of(folder: Path, written: int) -> str | None:
    """Return the fingerprint of a run, cached because each job of a sweep asks for all of them.

    Args:
        folder: The folder of the run.
        written: When its header was written.
    """
    return read_header(folder).tags.get(FINGERPRINT_TAG)
