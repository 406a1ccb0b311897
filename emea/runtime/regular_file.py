"""The one way to open a file whose content may come from a stranger, and its name."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from emea.errors import ConfigError, DataError


def check_local(name: object, what: str) -> None:
    """Raise an error if a name is a web address and not a file.

    Args:
        name: The name of a file.
        what: What the error message calls it.

    Raises:
        ConfigError: If it is an address.
    """
    if str(name).lower().startswith(("http://", "https://")):
        raise ConfigError(
            f"{what} must be a file. Download {name} first (docs/own_graphs.md)."
        )


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a file to read it. Pipes, sockets and devices are refused: they may never end.

    Raises:
        DataError: If the path is not a regular file, or the file changed while it was read.
        OSError: If it cannot be opened.
    """
    try:
        _check_kind(path, os.stat(path))
    except ValueError as error:
        raise DataError(f"{path} is not a valid file name: {error}.") from error
    # opening a pipe that took the place of the file meanwhile does not block
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        before = os.fstat(file.fileno())
        _check_kind(path, before)
        yield file
        after = os.fstat(file.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise DataError(
                f"{path} changed while it was read. Wait until no program writes to it, and repeat "
                "the command."
            )


def _check_kind(path: Path, status: os.stat_result) -> None:
    # opening a folder reports the problem
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise DataError(
            f"{path} is a pipe, socket or device, not a regular file. Write its content to a file "
            "and give that file."
        )
