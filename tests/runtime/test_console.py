"""Log lines on a terminal."""

import io
import logging

import pytest

from emea.runtime.console import ConsoleHandler


def test_lines_go_where_standard_error_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = ConsoleHandler()
    for text in ("first", "second"):
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        handler.emit(logging.LogRecord("name", logging.INFO, "", 0, text, None, None))
        assert stream.getvalue() == f"{text}\n"
