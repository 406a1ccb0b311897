"""Lines in the log of a process that is silent for long."""

import io
import logging
import time

import pytest
from rich.console import Console

from emea.runtime.heartbeat import Heartbeat


@pytest.fixture
def file() -> Console:
    return Console(file=io.StringIO())


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if text.startswith("Still running")]


def wait_for_line(caplog: pytest.LogCaptureFixture) -> None:
    end = time.monotonic() + 10
    while not lines(caplog) and time.monotonic() < end:
        time.sleep(0.01)


def test_a_silent_process_says_what_it_does(
    file: Console, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    heartbeat = Heartbeat(silent_seconds=0.05)
    with (
        heartbeat.beating(file),
        heartbeat.describing(lambda: "search, about 3 min left"),
    ):
        wait_for_line(caplog)
    assert lines(caplog)[0] == "Still running: search, about 3 min left"
    number = len(lines(caplog))
    time.sleep(0.1)
    assert len(lines(caplog)) == number  # the thread has ended


def test_without_a_description_the_last_line_is_repeated(
    file: Console, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    heartbeat = Heartbeat(silent_seconds=0.05)
    with (
        heartbeat.beating(file),
        heartbeat.beating(file),
    ):  # one watch within another is none
        logging.getLogger("emea").info("Reading\nmany files")
        wait_for_line(caplog)
    assert set(lines(caplog)) == {"Still running: Reading"}


def test_programs_without_handlers_still_see_warnings(file: Console) -> None:
    root = logging.getLogger()
    before = root.handlers[:]
    factory = logging.getLogRecordFactory()
    with Heartbeat().beating(file):
        assert root.handlers == before  # with a handler, logging would not print them
    assert logging.getLogRecordFactory() is factory


def test_a_terminal_shows_bars_instead(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    terminal = Console(file=io.StringIO(), force_terminal=True)
    with Heartbeat(silent_seconds=0.01).beating(terminal):
        time.sleep(0.1)
    assert not lines(caplog)
