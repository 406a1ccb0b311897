"""A process that is silent says what it is doing; on a terminal, a line shows it."""

import io
import logging
import sys
import time
from typing import Any

import pytest
from rich.console import Console

from emea.runtime import heartbeat
from emea.runtime.heartbeat import HEARTBEAT, Heartbeat, reading_data, shown_phase

from .test_progress import terminal


def lines_after(
    seconds: float, console: Console | None, caplog: Any, on_terminal: bool = False
) -> list[str]:
    caplog.set_level("INFO", logger=heartbeat.__name__)
    heart = Heartbeat(silent_seconds=0.05)
    phase = heart.describing(lambda: "EM iteration 3: reasoning")
    with phase, heart.beating(console, on_terminal):
        time.sleep(seconds)
    found = [record.message for record in caplog.records if record.name == heartbeat.__name__]
    caplog.clear()
    time.sleep(0.1)
    assert not caplog.records  # nothing after the end
    return found


def test_a_silent_run_says_what_it_does(caplog: pytest.LogCaptureFixture) -> None:
    file = Console(file=io.StringIO(), force_terminal=False)
    found = lines_after(0.4, file, caplog)
    assert found and set(found) == {"Still running: EM iteration 3: reasoning"}
    assert lines_after(0.4, terminal()[0], caplog) == []
    assert lines_after(0.4, terminal()[0], caplog, on_terminal=True)


def test_a_run_that_logs_is_not_interrupted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger=heartbeat.__name__)
    heart = Heartbeat(silent_seconds=5.0)
    with heart.beating(Console(file=io.StringIO(), force_terminal=False)):
        logging.getLogger("emea").warning("a line")
    assert [record.message for record in caplog.records] == ["a line"]


def test_a_phase_without_an_estimate_is_named() -> None:
    console, stream = terminal()
    with shown_phase("final evaluation", console):
        assert HEARTBEAT._describe is not None and HEARTBEAT._describe() == "final evaluation"
    assert HEARTBEAT._describe is None
    assert "final evaluation" in stream.getvalue()


def test_without_a_phase_the_last_line_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger=heartbeat.__name__)
    heart = Heartbeat(silent_seconds=0.05)
    with heart.beating(Console(file=io.StringIO(), force_terminal=False)):
        logging.getLogger("emea").warning("Measuring a step\nwith details")
        time.sleep(0.3)
    found = [record.message for record in caplog.records if record.name == heartbeat.__name__]
    assert found and set(found) == {"Still running: Measuring a step"}


def test_a_watch_within_another_adds_no_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger=heartbeat.__name__)
    heart, file = Heartbeat(silent_seconds=0.2), Console(file=io.StringIO(), force_terminal=False)
    with heart.beating(file):
        with heart.beating(file):
            pass
        time.sleep(0.5)  # the outer watch has not ended
    assert 1 <= len(caplog.records) <= 2


def test_reading_data_is_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", logger=heartbeat.__name__)
    monkeypatch.setattr(HEARTBEAT, "_silent", 0.05)
    with reading_data():
        time.sleep(0.3)
        found = [record.message for record in caplog.records]
    assert found and set(found) == {"Still running: reading data"}


def test_log_lines_are_written_above_a_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    console, stream = terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    handler = logging.StreamHandler(stream)  # keeps the stream it began with
    logging.getLogger().addHandler(handler)
    try:
        with shown_phase("writing results", console):
            logging.getLogger("emea").warning("a line of the log")
        assert handler.stream is stream
    finally:
        logging.getLogger().removeHandler(handler)
    cleared, _, rest = stream.getvalue().partition("a line of the log")
    assert cleared.endswith("\r\x1b[2K") and rest.startswith("\n")
