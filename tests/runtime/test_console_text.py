"""Names from a stranger cannot control the terminal."""

import io
import logging

import pytest
from rich.table import Table
from rich.text import Text

from emea.runtime.console import PlainFormatter, printable, say, terminal

HOSTILE = "a\x1b[2J\x07\x9b\x7f\u202eb\ud800"
SHOWN = r"a\x1b[2J\x07\x9b\x7f\u202eb\ud800"


def test_control_characters_are_escaped() -> None:
    assert printable(HOSTILE) == SHOWN
    for text in ("a\tb\nc", "\u200cname\u200d", "\u00a0", "\U0001f600", "\u0641\u0627"):
        assert printable(text) == text
    assert printable("a\rb") == r"a\rb"


def test_printed_lines_are_clean(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE, 1)
    assert capsys.readouterr().out == f"{SHOWN}\n1\n"


def test_tables_are_clean_and_keep_their_colours() -> None:
    file = io.StringIO()
    hostile, shown = (
        text.replace("\\x07", "").replace("\x07", "") for text in (HOSTILE, SHOWN)
    )
    table = Table(printable(hostile))
    table.add_row(Text(printable(hostile), style="bold"))
    console = terminal(
        file=file, force_terminal=True, color_system="standard", width=200
    )
    console.print(table)
    console.print(hostile, markup=False, highlight=False)
    text = file.getvalue()
    assert text.count(shown) == 3
    assert "\x1b[1m" in text and "\x1b[2J" not in text and "\u202e" not in text


def test_log_lines_are_clean() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "%s", (HOSTILE,), None)
    assert PlainFormatter("%(message)s").format(record) == SHOWN
