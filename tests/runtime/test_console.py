"""Log lines and durations on a terminal."""

import io
import logging

import pytest

from emea.runtime.console import ConsoleHandler, duration


def test_lines_go_where_standard_error_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = ConsoleHandler()
    for text in ("first", "second"):
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        handler.emit(logging.LogRecord("name", logging.INFO, "", 0, text, None, None))
        assert stream.getvalue() == f"{text}\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(12.4, "12 s"), (150, "2 min"), (7200, "2.0 h"), (89, "89 s")]
)
def test_durations_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text
