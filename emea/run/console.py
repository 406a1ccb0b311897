"""Log lines for a terminal that may also show a progress bar."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

LINE, TIME = "%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"


class ConsoleHandler(logging.StreamHandler[TextIO]):
    """Writes to whatever ``sys.stderr`` is at the moment.

    While a progress bar is shown, ``sys.stderr`` stands for a place above the bar; a handler
    that had kept the stream it began with would write into the bar.
    """

    @property
    def stream(self) -> TextIO:
        """The current standard error."""
        return sys.stderr

    @stream.setter
    def stream(self, value: TextIO) -> None:
        """Logging sets the stream it found first; it is not kept."""


@contextmanager
def logged(file: Path) -> Iterator[None]:
    """Log to the console and to a file, as Hydra does for a run."""
    handlers = (ConsoleHandler(), logging.FileHandler(file))
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


def duration(seconds: float) -> str:
    """A duration as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
