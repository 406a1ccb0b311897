"""Finding earlier runs by their fingerprint among run folders."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from emea.errors import UserError
from emea.tracking.file_lock import is_locked
from emea.tracking.run_record import FINGERPRINT_TAG, is_finished, read_header
from emea.tracking.sync import find_run_folders

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


def _folders(fingerprint: str, roots: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Run folders with this fingerprint, and whether they finished."""
    for folder in find_run_folders(root for root in roots if root.is_dir()):
        try:
            if read_header(folder).tags.get(FINGERPRINT_TAG) != fingerprint:
                continue
            ended = is_finished(folder)
        except UserError as error:
            logger.debug("passed over: %s", error)
            continue
        yield folder, ended
