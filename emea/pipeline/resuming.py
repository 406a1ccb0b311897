"""Going on with a run that was interrupted, in its own folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from omegaconf import DictConfig

from emea.errors import DataError, UserError
from emea.pipeline.checkpoint import PREVIOUS_FILE, load_progress, resumable
from emea.pipeline.run_files import CHECKPOINT_FILE, read_config
from emea.tracking.file_lock import file_lock
from emea.tracking.recorded import LOCK_FILE
from emea.tracking.run_record import (
    FINGERPRINT_TAG,
    RunHeader,
    drop_points_from,
    is_run_folder,
    read_closing,
    read_header,
)
from emea.training.turn_state import TURN_FILE


@dataclass(frozen=True)
class Start:
    """Where a run begins.

    Args:
        header: its own; of a run that goes on, the one it had.
        checkpoint: after which it goes on; ``None``: from the beginning.
    """

    header: RunHeader
    checkpoint: Path | None

    @classmethod
    def of(cls, folder: Path, header: RunHeader) -> "Start":
        """Go on where the folder, which is held, has an unfinished run of the same fingerprint."""
        if not _is_unfinished(folder, header):
            for name in (CHECKPOINT_FILE, PREVIOUS_FILE, TURN_FILE):
                (folder / name).unlink(missing_ok=True)  # of another run
            return cls(header, None)
        checkpoint = resumable(folder)
        progress = load_progress(checkpoint) if checkpoint else None
        drop_points_from(folder, progress.num_stages if progress else 0)
        earlier = read_header(folder)
        same = replace(header, run_id=earlier.run_id, start_time=earlier.start_time)
        return cls(same, checkpoint)


def config_to_resume(folder: Path) -> DictConfig:
    """The settings of an interrupted run.

    Raises:
        DataError: the folder holds none, or one that finished.
    """
    closing = read_closing(folder)
    if closing is not None and closing.status == "FINISHED":
        raise DataError(f"{folder} finished: there is nothing to go on with")
    return read_config(folder)


def forget_previous(folder: Path) -> None:
    """A finished run needs the checkpoint before its last no more."""
    (folder / PREVIOUS_FILE).unlink(missing_ok=True)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep others from computing in the folder.

    Raises:
        UserError: somebody does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with file_lock(folder / LOCK_FILE, timeout=0.0):
            yield
    except TimeoutError as error:
        raise UserError(f"{folder} is in use by a run that goes on") from error


def _is_unfinished(folder: Path, header: RunHeader) -> bool:
    if not is_run_folder(folder):
        return False
    closing = read_closing(folder)
    same = read_header(folder).tags.get(FINGERPRINT_TAG) == header.tags[FINGERPRINT_TAG]
    return same and (closing is None or closing.status != "FINISHED")
