"""Error messages have one line, also if they quote text with several lines."""

import pickle

import pytest

from emea.errors import MOST_CHARACTERS, DataError


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("a.nt, line 3: what?", "a.nt, line 3: what?"),
        ("first\n    second\r\nthird\n", "first second third"),
        ("'\x85' and '\x1b[31m' and '\u2028'", r"'\x85' and '\x1b[31m' and '\u2028'"),
        ("not UTF-8: \udcff", r"not UTF-8: \udcff"),
        ("Köln 日本", "Köln 日本"),
    ],
)
def test_one_line(message: str, told: str) -> None:
    assert str(DataError(message)) == told


def test_what_is_very_long_keeps_its_beginning_and_its_end() -> None:
    told = str(DataError(f"a.nt, line 1: {'x' * 70_000} (mend it)"))
    assert told.startswith("a.nt, line 1: xxx") and told.endswith("xxx (mend it)")
    assert len(told) <= MOST_CHARACTERS


def test_errors_travel_between_processes() -> None:
    assert str(pickle.loads(pickle.dumps(DataError("a\nb")))) == "a b"
