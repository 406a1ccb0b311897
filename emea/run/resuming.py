"""Starts, resumes and closes the record of a run in its folder."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote

from filelock import FileLock, Timeout
from omegaconf import DictConfig

from emea.answer.curation import DECISIONS_FILE
from emea.answer.settings import ALIGNMENT_FILES, SCHEMA_FILES
from emea.config.unknown_settings import without_unknown
from emea.data.graph_pair import GraphPair
from emea.errors import NO_SPACE, DataError, UserError
from emea.fit.checkpoint import PREVIOUS_FILE, load_progress, resumable
from emea.record.checked_files import remove_leftovers
from emea.record.file_names import CHECKPOINT_FILE
from emea.record.pair_file import keeps_graphs, write_pair
from emea.record.run_folder import (
    BELIEFS_FILE,
    CONFIG_FILE,
    METRICS_FILE,
    PAIR_FILE,
    RANKS_FILE,
    read_config,
    write_config,
)
from emea.record.run_header import host_of, with_own_store
from emea.record.run_record import (
    COMMAND_TAG,
    FINGERPRINT_TAG,
    LOCK_FILE,
    SWEEP_TAG,
    RunHeader,
    continuing_command,
    is_finished,
    is_run_folder,
    keep_points,
    read_header,
)
from emea.record.store_uri import STORE_VARIABLE
from emea.record.tracker import Tracker
from emea.runtime.block_memory import is_out_of_memory
from emea.runtime.device import deterministic_mode
from emea.runtime.signals import signals_as_interrupt, was_terminated

logger = logging.getLogger(__name__)


FIRST_FILES = (LOCK_FILE, ".hydra")
"""What a run creates before its first record."""

RESULT_FILES = (
    *(METRICS_FILE, BELIEFS_FILE, RANKS_FILE, DECISIONS_FILE),
    *ALIGNMENT_FILES,
    *SCHEMA_FILES,
)
"""Files that a run writes at its end."""


FULL_DISK = (
    "The disk is full, or a file has reached a quota or the limit of its size (ulimit -f). Earlier "
    "files are complete. Free some space, then continue with: {}"
)

OUT_OF_MEMORY = (
    "Out of memory, and smaller blocks do not help. Use a smaller model.encoder.dim or "
    "model.objective.batch_size, or search=kmeans, or train in host memory with trainer=cpu."
)


Start = tuple[RunHeader, Path | None]
"""The header of a run, and the checkpoint to continue from, if there is one."""


def start_or_resume(folder: Path, header: RunHeader, resumes: bool = False) -> Start:
    """Resume the unfinished run in the folder if it has the same fingerprint, else start.

    Args:
        folder: The folder of the run, which must be locked.
        header: The header for a new run; a resumed run keeps its own.
        resumes: Whether the user asked to resume. If so, no new run is started.

    Raises:
        DataError: If the user asked to resume, and the settings, data or code changed.
    """
    earlier = read_header(folder) if is_run_folder(folder) else None
    found = None if earlier is None else earlier.tags.get(FINGERPRINT_TAG)
    same = found == header.tags[FINGERPRINT_TAG]
    if earlier is not None and resumes and not same:
        has_data = earlier.tags.get("data_checksum") == header.tags["data_checksum"]
        code = f"settings or code (commit {earlier.tags.get('commit', 'unknown')[:10]})"
        raise DataError(
            f"{folder} cannot be resumed: its {code if has_data else 'data'} changed since it "
            "started. Restore them and resume it, or run its command again to start a new run."
        )
    if earlier is None or not same or is_finished(folder):
        if earlier is not None:
            logger.warning("Replacing the files of an earlier run in %s", folder)
        make_room(folder)
        return header, None
    checkpoint = resumable(folder)
    progress = load_progress(checkpoint) if checkpoint else None
    keep_points(folder, len(progress.plain["history"]) if progress else 0)
    kept = {
        name: tag
        for name, tag in earlier.tags.items()
        if name in (SWEEP_TAG, COMMAND_TAG)
    }
    its_own = replace(
        header,
        run_id=earlier.run_id,
        # a resumed run does not know which settings its sweep varied
        name=header.name if SWEEP_TAG in header.tags else earlier.name,
        start_time=earlier.start_time,
        tags={**kept, **header.tags},
    )
    return its_own, checkpoint


def config_to_resume(folder: Path) -> DictConfig:
    """Return the settings of an interrupted run.

    Raises:
        DataError: If the folder contains a run that had not begun, or a finished one.
        UserError: If the folder contains no run.
    """
    if not is_run_folder(folder) and any(
        (folder / name).exists() for name in FIRST_FILES
    ):
        raise DataError(
            f"{folder} has nothing to resume: the run stopped before its first record. Run its "
            "command again."
        )
    if is_finished(folder):
        forget_previous(folder)  # is left if the run was killed right after it finished
        raise DataError(f"{folder} is finished. There is nothing to resume.")
    command = continuing_command(read_header(folder))
    if command is not None:
        raise DataError(
            f"{folder} joins other runs and cannot be resumed. Repeat: {command}"
        )
    config = without_unknown(read_config(folder), folder / CONFIG_FILE)
    return with_own_store(config)


def forget_previous(folder: Path) -> None:
    """Remove the previous checkpoint, which a finished run does not need."""
    (folder / PREVIOUS_FILE).unlink(missing_ok=True)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Create the folder and lock it, so that no other run writes into it.

    Raises:
        UserError: If another run has locked the folder, or it is not writable.
    """
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(folder / LOCK_FILE, timeout=0))
        except Timeout as error:
            raise UserError(
                f"{folder} is in use by another run. Wait until it ends, or choose another folder."
            ) from error
        except OSError as error:
            raise UserError(
                f"The run folder {folder} cannot be written: {error.strerror}. "
                "Choose another folder."
            ) from error
        remove_leftovers(folder)
        yield  # errors of the run itself are not changed


@contextmanager
def recorded(
    config: DictConfig,
    pair: GraphPair,
    folder: Path,
    *,
    header: RunHeader,
    tracker: Tracker,
    resumes: bool,
) -> Iterator[Start]:
    """Lock the folder, start or resume the record of a run there, and close it at the end."""
    deterministic = bool(config.trainer.get("deterministic"))
    with locked_folder(folder):
        with (
            signals_as_interrupt(),
            _tracked(tracker, folder, config),
            deterministic_mode(deterministic),
        ):
            start = start_or_resume(folder, header, resumes)
            write_config(folder, config)
            if keeps_graphs(config):
                write_pair(folder / PAIR_FILE, pair)
            tracker.start(start[0], folder)
            yield start
        # until the record says that the run is finished, a killed run needs it to resume
        forget_previous(folder)


@contextmanager
def _tracked(tracker: Tracker, folder: Path, config: DictConfig) -> Iterator[None]:
    """Close the tracker's run with the status and the reason of its end."""
    try:
        yield
    except KeyboardInterrupt:
        how = "terminated" if was_terminated() else "interrupted"
        tracker.finish("KILLED", how)
        command = _next_command(folder, config)
        logger.warning("The run was %s. Continue with: %s", how, command)
        raise
    except BaseException as error:
        tracker.finish("FAILED", f"{type(error).__name__}: {error}")
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            command = _next_command(folder, config)
            raise UserError(FULL_DISK.format(command)) from error
        if is_out_of_memory(error):
            raise UserError(OUT_OF_MEMORY) from error
        raise
    tracker.finish("FINISHED")


def _next_command(folder: Path, config: DictConfig) -> str:
    """Return the command that continues a run: it resumes the run, or joins runs again."""
    header = read_header(folder) if is_run_folder(folder) else None
    repeated = None if header is None else continuing_command(header)
    return repeated or _resume_command(folder, config)


def _resume_command(folder: Path, config: DictConfig) -> str:
    """Return the command that resumes a run.

    The user names the modules and the host of the configuration again.
    """
    trust = config.get("trust") or ()
    host = host_of(config)
    command = f"{STORE_VARIABLE}={quote(host)} " if host else ""
    command += f"emea run resume={quote(str(folder))}"
    command += f" {quote('trust=[' + ','.join(trust) + ']')}" if trust else ""
    return command


def make_room(folder: Path) -> None:
    """Remove the files of an earlier run, so that they are not mixed with those of the next."""
    for name in (CHECKPOINT_FILE, PREVIOUS_FILE, PAIR_FILE, *RESULT_FILES):
        (folder / name).unlink(missing_ok=True)
