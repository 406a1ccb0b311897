"""Shows what a process is doing: on a terminal at once, otherwise as a log line every minute."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

logger = logging.getLogger(__name__)

SILENT_SECONDS = 60.0
"""Without a terminal, a line is logged after this time without another one."""


class _LastLine(logging.Handler):
    """Records when the last log line was written, and what it said."""

    def __init__(self) -> None:
        super().__init__()
        self.time = time.monotonic()
        self.text = "preparing the run"

    def emit(self, record: logging.LogRecord) -> None:
        """Note the time, and the text unless it is a line of the heartbeat."""
        self.time = time.monotonic()
        if record.name != logger.name:
            self.text = record.getMessage().partition("\n")[0]


class Heartbeat:
    """Logs what a process does if it has not logged anything for a minute."""

    def __init__(self, silent_seconds: float = SILENT_SECONDS) -> None:
        self._describe: Callable[[], str] | None = None
        self._silent = silent_seconds
        self._is_beating = False

    @contextmanager
    def beating(self, console: Console | None = None, on_terminal: bool = False) -> Iterator[None]:
        """Watch the log in a thread; within another watch, do nothing.

        Args:
            console: The console that shows bars; ``None`` means standard error.
            on_terminal: Also watch on a terminal, because no bar is shown.
        """
        is_shown = (console or Console(stderr=True)).is_terminal and not on_terminal
        if is_shown or self._is_beating:
            yield
            return
        last, root, ended = _LastLine(), logging.getLogger(), threading.Event()
        thread = threading.Thread(target=self._watch, args=(last, ended), daemon=True)
        root.addHandler(last)
        self._is_beating = True
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            root.removeHandler(last)
            self._is_beating = False

    @contextmanager
    def describing(self, describe: Callable[[], str]) -> Iterator[None]:
        """Describe the current phase with a function; without one, repeat the last log line."""
        before, self._describe = self._describe, describe
        try:
            yield
        finally:
            self._describe = before

    def _watch(self, last: _LastLine, ended: threading.Event) -> None:
        while not ended.wait(max(0.01, last.time + self._silent - time.monotonic())):
            if time.monotonic() - last.time >= self._silent:
                describe = self._describe
                logger.info("Still running: %s", last.text if describe is None else describe())


HEARTBEAT = Heartbeat()
"""The heartbeat of this process, which carries out one run at a time."""


@contextmanager
def lines_above(progress: Progress) -> Iterator[None]:
    """Show a progress line, and write log lines above it."""
    real = (sys.stderr, sys.stdout)
    redirected = []
    progress.start()
    if not progress.disable:
        # a handler that keeps its first stream would write into the progress line
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream in real:
                redirected.append((handler, handler.setStream(sys.stderr)))
    try:
        yield
    finally:
        progress.stop()
        for handler, stream in redirected:
            if stream is not None:
                handler.setStream(stream)


@contextmanager
def shown_phase(name: str, console: Console | None = None) -> Iterator[None]:
    """Show a phase without an estimate, with the time that it has taken so far.

    Args:
        name: The name of the phase.
        console: The console to show it on; ``None`` means standard error.
    """
    console = console or Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    off = not console.is_terminal
    progress = Progress(*columns, console=console, transient=True, disable=off)
    progress.add_task(name, total=None)
    with HEARTBEAT.describing(lambda: name), lines_above(progress):
        yield


@contextmanager
def reading_data() -> Iterator[None]:
    """Show that data is being read.

    Nothing is logged at the start, so that a mistake in a file is reported as one sentence.
    """
    with HEARTBEAT.beating(), shown_phase("reading data"):
        yield
