"""Handles the signals that interrupt a run."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""Exit status after Ctrl-C; by convention 128 and the signal's number."""

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)
"""A cluster sends the first before it kills a job, a closed terminal sends the second, and the
system sends the third, every second, when the limit of CPU time is reached."""

_received: list[int] = []
"""Signals that asked this process to end. Lightning answers an exception with one of its own, so
which signal it was has to be remembered."""


@contextmanager
def signals_as_interrupt() -> Iterator[None]:
    """Handle the signals of `ENDING` like Ctrl-C; an ignored one, as by nohup, stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return

    def end(number: int, frame: FrameType | None) -> None:
        is_repeated = number == signal.SIGXCPU and number in _received
        _received.append(number)
        if not is_repeated:
            raise KeyboardInterrupt

    handled = [
        number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN
    ]
    before = {number: signal.signal(number, end) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def was_terminated() -> bool:
    """Return whether one of the signals of `ENDING` ended the run."""
    return bool(_received)


def exit_status() -> int:
    """Return the exit status of an interrupted process."""
    return 128 + _received[0] if _received else INTERRUPTED
