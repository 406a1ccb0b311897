"""A line in the log now and then while a process works, where no progress bar is shown."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

logger = logging.getLogger(__name__)

SILENT_SECONDS = 60.0
"""Without a terminal, a line is logged after this time without another one."""


class _LastLine:
    """Records when the last log line was made, and what it said.

    It is a factory of log records. As a handler, it would keep ``logging`` from printing warnings
    in programs that configured no handler.
    """

    def __init__(self) -> None:
        self.make = logging.getLogRecordFactory()
        self.time = time.monotonic()
        self.text = "preparing"

    def __call__(self, *arguments: Any, **named: Any) -> logging.LogRecord:
        """Make a record; note the time, and the text unless it is a line of the heartbeat."""
        record = self.make(*arguments, **named)
        self.time = time.monotonic()
        if record.name != logger.name:
            self.text = record.getMessage().partition("\n")[0]
        return record


class Heartbeat:
    """Logs what the process does whenever it was silent for a minute.

    A thread writes the line, because a long search or reasoning returns to no code that could.

    Attributes:
        describe: Returns what the process does; ``None`` means that the last line is repeated.
    """

    def __init__(self, silent_seconds: float = SILENT_SECONDS) -> None:
        self.describe: Callable[[], str] | None = None
        self._silent_seconds = silent_seconds
        self._is_beating = False

    @contextmanager
    def beating(self, console: Console | None = None) -> Iterator[None]:
        """Watch the log. On a terminal, where bars are shown, and within another watch, do nothing.

        Args:
            console: The console that would show bars; ``None`` means standard error.
        """
        shows_bars = (console or Console(stderr=True)).is_terminal
        if shows_bars or self._is_beating:
            yield
            return
        last = _LastLine()
        ended = threading.Event()
        thread = threading.Thread(target=self._watch, args=(last, ended), daemon=True)
        logging.setLogRecordFactory(last)
        self._is_beating = True
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            logging.setLogRecordFactory(last.make)
            self._is_beating = False

    @contextmanager
    def describing(self, describe: Callable[[], str]) -> Iterator[None]:
        """Describe the current work with a function."""
        before = self.describe
        self.describe = describe
        try:
            yield
        finally:
            self.describe = before

    def _watch(self, last: _LastLine, ended: threading.Event) -> None:
        while True:
            due = last.time + self._silent_seconds
            if ended.wait(max(0.01, due - time.monotonic())):
                return
            if time.monotonic() - last.time < self._silent_seconds:
                continue  # another line was written in the meantime
            describe = self.describe
            logger.info(
                "Still running: %s", last.text if describe is None else describe()
            )


HEARTBEAT = Heartbeat()
"""The heartbeat of this process, which carries out one run at a time."""
