"""Checks and locks of what commands write: single files, and folders with several files.

A command checks its output before it computes, and keeps it locked until it is written, so that a
second command ends with a sentence. Files are written atomically (`checked_files`). A killed
command leaves only its lock, which the next one takes over.
"""

import os
import re
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from emea.config.paths import check_no_link
from emea.errors import DataError, UserError, writing
from emea.record.checked_files import remove_leftovers
from emea.record.file_names import DECISIONS_FILE
from emea.record.run_folder import RUN_FILES
from emea.record.run_record import LOCK_FILE, RUN_FILE
from emea.runtime.regular_file import open_regular

PAGE, MERGED, LEFT_OUT, RUNS = "page", "merged graph", "left out", "runs"
DECISIONS, EXPLANATIONS = "decisions", "explanations"
MARKS = {
    PAGE: rb'<meta name="generator" content="emea"',
    MERGED: rb"\A# Merged by emea\b",
    LEFT_OUT: rb"\Asource\ttarget\tprobability\treason\n",
    RUNS: rb"\A# Your runs\n",
    DECISIONS: rb"\Asource\ttarget\tdecision\tauthor\tdate\n",
    EXPLANATIONS: rb'\A\{\s*"schema": \d+,\s*"run": \{\s*"folder": ',
}
"""What each kind of file that emea wrote contains near its beginning. A command replaces its own
kind only: decisions are the work of a person."""

MARKED_BYTES = 4096

DIVISION_FILES = {"division.json", "config.yaml", "pair.npz", "entities.npz"}
RECORDS = (RUN_FILE, "division.json", "entities.npz")
"""Files of which one is in each folder of a run, of a division and of a part."""


def check_file(
    path: Path, force: bool = False, is_default: bool = False, *, kind: str = ""
) -> None:
    """Raise an error if a command must not write a file.

    Args:
        path: The file.
        force: Whether the user allows to replace a file that emea did not write.
        is_default: Whether the user did not name the file. Then it belongs to emea.
        kind: What the command writes, a key of ``MARKS``. It replaces such a file without
            ``force``.

    Raises:
        DataError: It is a link, device, pipe or folder, belongs to a run or a division, or contains
            something of the user.
    """
    _check_kind(path)
    if _is_recorded(path):
        raise DataError(
            f"{path} belongs to a run or a division, whose files cannot be replaced. Choose another"
            " file with another name."
        )
    if force or is_default or not path.exists() or _is_own(path, kind):
        return
    raise DataError(
        f"{path} exists and was not written by emea. Choose another file, or replace it with "
        "--force."
    )


def _check_kind(path: Path) -> None:
    """Raise an error if something other than a regular file is at a path."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{path} cannot be written: {reason}. Choose another place."
        ) from error
    if stat.S_ISLNK(mode) and not _is_device(path):
        raise DataError(
            f"{path} is a symbolic link. Remove it, or name the file itself: {path.resolve()}."
        )
    if stat.S_ISDIR(mode):
        raise DataError(f"{path} is a folder. Name a file.")
    if not stat.S_ISREG(mode) or _is_device(path):
        raise DataError(
            f"{path} is a pipe, socket or device, which is not replaced. Name a file."
        )


def _is_device(path: Path) -> bool:
    """Return whether a path belongs to the system, as ``/dev/stdout``, or leads to a device."""
    place = path.absolute()
    is_of_system = place.is_relative_to("/dev") or place.is_relative_to("/proc")
    if is_of_system and not place.is_relative_to("/dev/shm"):  # files in memory
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _is_recorded(path: Path) -> bool:
    """Return whether a file is one of those that runs and divisions consist of."""
    folder = path.parent.resolve()
    places = (folder, folder.parent) if folder.name == ".hydra" else (folder,)
    if not any((place / name).is_file() for place in places for name in RECORDS):
        return False
    names = {*RUN_FILES, *DIVISION_FILES, LOCK_FILE, DECISIONS_FILE}
    return (
        path.name in names or folder.name == ".hydra" or path.suffix == ".safetensors"
    )


def _is_own(path: Path, kind: str) -> bool:
    """Return whether emea wrote a file of this kind."""
    with writing(path), open_regular(path) as file:
        start = file.read(MARKED_BYTES)
    return kind in MARKS and re.search(MARKS[kind], start) is not None


@contextmanager
def locked_file(
    path: Path, force: bool = False, is_default: bool = False, *, kind: str = ""
) -> Iterator[None]:
    """Check a file of results, and lock it while a command computes and writes it.

    Folders that are missing are created, and removed again if nothing was written. What a killed
    command left of the file is removed. The arguments are those of `check_file`.

    Raises:
        UserError: The file must not be written (`check_file`), another command writes it, or its
            folder is not writable.
    """
    check_file(path, force, is_default, kind=kind)
    with _folder(path.parent, path), _locked(path.parent / f".{path.name}.lock", path):
        remove_leftovers(path.parent, path.name)
        yield


@contextmanager
def locked_results(
    folder: Path, record: str, names: Collection[str], force: bool = False
) -> Iterator[None]:
    """Check a folder of results, and lock it while a command computes and writes its files.

    Args:
        folder: The folder. It is created if it is missing.
        record: The file that marks a folder which the command wrote.
        names: The files that the command may write.
        force: Whether the user allows to replace files that emea did not write.

    Raises:
        UserError: The folder belongs to a run or a division, is a link, contains files of these
            names that emea did not write, or is locked or not writable.
    """
    check_no_link(folder)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file. Choose another --out folder.")
    if any((folder / name).is_file() for name in RECORDS):
        raise DataError(
            f"{folder} belongs to a run or a division. Choose another --out folder."
        )
    found = sorted(name for name in names if os.path.lexists(folder / name))
    for name in found:
        _check_kind(folder / name)
    is_own = (folder / record).is_file() or os.path.lexists(folder / LOCK_FILE)
    if found and not (is_own or force):
        raise DataError(
            f"{folder / found[0]} exists and was not written by emea. Choose another --out folder, "
            "or replace it with --force."
        )
    # files without a record can be replaced by the next command if the lock is still there
    is_new = is_own or not found

    def is_begun() -> bool:
        is_recorded = (folder / record).is_file()
        return is_new and not is_recorded and any(map(os.path.lexists, places))

    places = [folder / name for name in names]
    with (
        _folder(folder, folder),
        _locked(folder / LOCK_FILE, folder, keeps_after_error=is_begun),
    ):
        remove_leftovers(folder)
        yield


@contextmanager
def _folder(folder: Path, place: Path) -> Iterator[None]:
    """Create a folder, and remove it again if it stays empty.

    Args:
        folder: The folder.
        place: What error messages name.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    with writing(place):
        folder.mkdir(parents=True, exist_ok=True)
        # permissions are not enough: the disk may be read-only
        with tempfile.TemporaryFile(prefix=".emea-", dir=folder):
            pass
    try:
        yield
    finally:
        for one in missing:
            with suppress(OSError):  # it is not empty
                one.rmdir()


@contextmanager
def _locked(
    lock: Path, place: Path, keeps_after_error: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Hold a lock, whose file is removed at the end.

    Args:
        lock: The file of the lock.
        place: What error messages name.
        keeps_after_error: Returns whether the file stays after an error, as after a kill.
    """
    from filelock import FileLock, Timeout

    held = FileLock(lock, timeout=0)
    with writing(place):
        try:
            held.acquire()
        except Timeout as error:
            raise UserError(
                f"{place} is in use by another command. Wait until it ends, or choose another "
                "--out."
            ) from error
    is_kept = False
    try:
        yield
    except BaseException:
        is_kept = keeps_after_error()
        raise
    finally:
        # while the lock is held: who has opened the file before notices that it is gone
        if not is_kept:
            with suppress(OSError):
                lock.unlink()
        held.release()
