"""Log lines for a terminal that may also show a progress bar."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from emea.errors import paths_checked

LINE, TIME = "%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"


class ConsoleHandler(logging.StreamHandler[TextIO]):
    """Writes log lines to the current ``sys.stderr``.

    While a progress bar is shown, ``sys.stderr`` is replaced by a stream that writes above the bar.
    A handler that kept its first stream would write into the bar.
    """

    @property
    def stream(self) -> TextIO:
        """The current standard error."""
        return sys.stderr

    @stream.setter
    def stream(self, value: TextIO) -> None:
        """Ignore the stream that ``logging`` sets at the start."""


class LogFileHandler(logging.FileHandler):
    """Appends log lines to a file. A symbolic link or a pipe at its path is replaced."""

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            with paths_checked():
                path.unlink()
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (name of logging)
        """Leave out a line that cannot be written: the run reports that the disk is full."""


@contextmanager
def logged(file: Path | None = None) -> Iterator[None]:
    """Log to the console and, if one is given, to a file, as Hydra does for a run."""
    handlers: list[logging.Handler] = [ConsoleHandler()]
    if file is not None:
        handlers.append(LogFileHandler(file))
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(logging.Formatter(LINE, TIME))
        root.addHandler(handler)
    try:
        yield
    finally:
        root.setLevel(level)
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()
