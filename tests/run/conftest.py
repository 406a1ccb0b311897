"""Settings shared by the tests of runs."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Handle signals in the usual way, even if the tests were started with nohup or in a script.

    nohup ignores SIGHUP, and a script ignores SIGINT of jobs in its background. Processes that a
    test starts inherit this.
    """
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGHUP: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
