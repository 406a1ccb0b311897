"""Finding an earlier run by its fingerprint among run folders."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from emea.errors import UserError
from emea.tracking.file_lock import is_locked
from emea.tracking.run_record import FINGERPRINT_TAG, read_closing, read_header
from emea.tracking.sync import find_run_folders

logger = logging.getLogger(__name__)

LOCK_FILE = ".running"
"""Held by whoever computes in a run's folder."""


def recorded_folder(fingerprint: str, roots: Iterable[Path]) -> Path | None:
    """The folder of a finished run with this fingerprint, below roots that need not exist."""
    found = (folder for folder, finished in _folders(fingerprint, roots) if finished)
    return next(found, None)


def unfinished_folder(fingerprint: str, roots: Iterable[Path]) -> Path | None:
    """The same of a run that was interrupted or failed, and that nobody goes on with."""
    found = (folder for folder, finished in _folders(fingerprint, roots) if not finished)
    return next((folder for folder in found if not is_locked(folder / LOCK_FILE)), None)


def _folders(fingerprint: str, roots: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Run folders with this fingerprint, and whether they finished."""
    for folder in find_run_folders(root for root in roots if root.is_dir()):
        try:
            header, closing = read_header(folder), read_closing(folder)
        except UserError as error:
            logger.debug("passed over: %s", error)
            continue
        if header.tags.get(FINGERPRINT_TAG) == fingerprint:
            yield folder, closing is not None and closing.status == "FINISHED"
