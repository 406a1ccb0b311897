"""Errors that the user can fix. They are shown as one line, without a traceback."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_CHARACTERS = 1000
"""Maximum length of a message. Longer messages quote very long input."""

LEFT_OUT = " ... "
LINE_BREAK = re.compile(r"\s*[\r\n]\s*")


def one_line(text: str) -> str:
    """Return a text as one printable line.

    Lines are joined and unprintable characters are escaped. The middle of a very long text is left
    out, because the beginning names the place of the error and the end may say what to do.
    """
    text = LINE_BREAK.sub(" ", text.strip())
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _escaped(char) for char in text)
    if len(text) <= MOST_CHARACTERS:
        return text
    part = MOST_CHARACTERS // 2 - len(LEFT_OUT)
    return f"{text[:part]}{LEFT_OUT}{text[-part:]}"


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode()


class UserError(Exception):
    """Raised if the user's input is wrong; the message says what is wrong and what to do."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class DataError(UserError):
    """Raised if a file, folder or graph cannot be used."""


class DivergedError(UserError, FloatingPointError):
    """Raised if training diverges, so that the loss becomes NaN or infinite."""


class ConfigError(UserError):
    """Raised if a configuration value or a combination of values is not allowed."""


NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The disk is full, a quota is used up, or a file has reached the limit of its size."""


@contextmanager
def paths_checked() -> Iterator[None]:
    """Raise a ``UserError`` if a path is too long, may not be accessed or cannot be written."""
    try:
        yield
    except OSError as error:
        if isinstance(error, PermissionError):
            advice = "Check the permissions of the file and its folders."
        elif error.errno == errno.ENAMETOOLONG:
            advice = "Choose a shorter name."
        elif error.errno in (errno.EISDIR, errno.ENOTDIR):
            advice = "Remove or rename it."
        elif error.errno in NO_SPACE:
            advice = "Free some space, or raise the quota or the limit (ulimit -f)."
        else:
            raise
        place = error.filename or "A file"
        reason = error.strerror or error
        raise UserError(f"{place} cannot be accessed: {reason}. {advice}") from error


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Raise a ``DataError`` if the file or folder cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error  # it may name a temporary file
        raise DataError(
            f"{place} cannot be written: {reason}. Choose another place."
        ) from error
