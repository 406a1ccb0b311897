"""Earlier runs with the same settings, data and code."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from emea.errors import UserError
from emea.record.run_folder import read_metrics, sweep_objective
from emea.record.run_record import (
    FINGERPRINT_TAG,
    RunHeader,
    is_finished,
    read_header,
)
from emea.record.sync import find_run_folders

logger = logging.getLogger(__name__)


def finished_run(fingerprint: str, roots: Iterable[Path]) -> Path | None:
    """Return a finished run with this fingerprint below roots, which need not exist."""
    for folder in find_run_folders(root for root in roots if root.is_dir()):
        try:
            if read_header(folder).tags.get(FINGERPRINT_TAG) == fingerprint and is_finished(folder):
                return folder
        except (UserError, OSError) as error:
            logger.debug("%s is not a usable run folder: %s", folder, error)
    return None


RUNS = ("multirun", "outputs")
"""Where runs leave their folders, below the working directory."""


class AlreadyRecordedError(Exception):
    """Raised if a finished run with the same fingerprint is recorded.

    Args:
        place: The place of the record.
        objective: The value that a sweeper maximises.
    """

    def __init__(self, place: str, objective: float) -> None:
        self.place = place
        super().__init__(
            f"Already recorded as {place}: skipped. Run it again with skip_recorded=false."
        )
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
