"""Log lines for a terminal that may also show a progress bar."""

import logging
import sys
from typing import TextIO


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
