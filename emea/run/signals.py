"""Handles the signals that interrupt a run."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143
"""Exit statuses by convention: 128 and the signal's number."""

_received: list[int] = []
"""Signals that asked this process to end. Lightning answers an exception with one of its own, so
which signal it was has to be remembered."""


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Handle SIGTERM, which a cluster sends before it kills a job, like Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return

    def end(number: int, frame: FrameType | None) -> None:
        _received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def exit_status() -> int:
    """Return the exit status of an interrupted process."""
    return TERMINATED if signal.SIGTERM in _received else INTERRUPTED
