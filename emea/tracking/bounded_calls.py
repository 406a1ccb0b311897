"""Calls that may hang, waited for no longer than agreed."""

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class BoundedCalls:
    """Makes one call after the other, in threads that do not keep the process alive.

    MLflow's own timeouts bound no call: it retries, sleeps as long as a server bids it to, takes
    any byte for a sign of life, and waits for locks without end.

    Args:
        patience: Seconds that may be spent waiting, over all calls together.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._left = patience
        self._began = 0.0
        self._call: Future[Any] = Future()
        self._call.set_result(None)

    def do(self, action: Callable[[], T]) -> T:
        """Wait for the call that goes on, then make this one and wait for its result.

        Raises:
            TimeoutError: If patience ran out; the call may still go on.
        """
        self._wait()
        self.begin(action)
        result: T = self._wait()
        return result

    def begin(self, action: Callable[[], object]) -> None:
        """Make a call while the caller goes on; to be asked for only when idle."""
        self._call, self._began = Future(), time.monotonic()
        Thread(target=_settle, args=(self._call, action), name="mlflow", daemon=True).start()

    def is_idle(self) -> bool:
        """Whether the last call is over; what it raised is raised here.

        Raises:
            TimeoutError: If it has been going on for longer than patience allows.
        """
        if self._call.done():
            self._call.result()
            return True
        if time.monotonic() - self._began > self._patience:
            raise self._too_slow()
        return False

    def _wait(self) -> Any:
        began = time.monotonic()
        wait([self._call], timeout=max(self._left, 0.0))
        self._left -= time.monotonic() - began
        # Asked for like this because a call may itself raise TimeoutError.
        if not self._call.done():
            raise self._too_slow()
        return self._call.result()

    def _too_slow(self) -> TimeoutError:
        return TimeoutError(f"it kept the run waiting for {self._patience:g} s")


def _settle(call: "Future[Any]", action: Callable[[], object]) -> None:
    try:
        call.set_result(action())
    # Any kind: whoever waits must hear of it.
    except BaseException as error:
        call.set_exception(error)
