"""What reaches a terminal: printed text, tables and log lines, without control characters."""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from emea.errors import paths_checked

if TYPE_CHECKING:
    from rich.console import Console

CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that could move the cursor, change colours or reverse the direction of text: control
characters except for tabs and newlines, and those of bidirectional text."""

LINE, TIME = "%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"


def printable(text: str) -> str:
    """Return a text whose control characters are escaped. Names may come from a stranger."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(*parts: object, file: TextIO | None = None) -> None:
    """Print lines without control characters."""
    print(*(printable(str(part)) for part in parts), sep="\n", file=file)


def terminal(**settings: Any) -> "Console":
    """Return a console of rich that prints text without control characters."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Printable(Console):
        """Escapes the text of all that it renders; rich adds its own control sequences later."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else printable(text), style, control)

    return Printable(**settings)


class PlainFormatter(logging.Formatter):
    """Formats log lines without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with the traceback if there is one."""
        return printable(super().format(record))


def warn_on(stream: TextIO | None = None) -> None:
    """Log warnings to a stream, by default to standard error, without a time."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PlainFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


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
        handler.setFormatter(PlainFormatter(LINE, TIME))
        root.addHandler(handler)
    try:
        yield
    finally:
        root.setLevel(level)
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()
