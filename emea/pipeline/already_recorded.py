"""Passing over runs that are recorded: same settings, data and code."""

import logging
import math
from collections.abc import Sequence
from pathlib import Path

from emea.pipeline.run_files import read_metrics
from emea.pipeline.sweep_objective import sweep_objective
from emea.tracking.recorded import earlier_runs
from emea.tracking.run_record import FINGERPRINT_TAG, RunHeader
from emea.tracking.tracker import Tracker

logger = logging.getLogger(__name__)

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
