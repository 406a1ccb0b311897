"""Finding an earlier run by its fingerprint among run folders."""

import logging
from collections.abc import Iterable
from pathlib import Path

from emea.errors import UserError
from emea.tracking.run_record import FINGERPRINT_TAG, read_closing, read_header
from emea.tracking.sync import find_run_folders

logger = logging.getLogger(__name__)


def recorded_folder(fingerprint: str, roots: Iterable[Path]) -> Path | None:
    """The folder of a finished run with this fingerprint, below roots that need not exist."""
    for folder in find_run_folders(root for root in roots if root.is_dir()):
        try:
            header, closing = read_header(folder), read_closing(folder)
        except UserError as error:
            logger.debug("passed over: %s", error)
            continue
        finished = closing is not None and closing.status == "FINISHED"
        if finished and header.tags.get(FINGERPRINT_TAG) == fingerprint:
            return folder
    return None
