"""Errors that are the user's to mend: shown as one sentence, without a traceback."""

import re

MOST_CHARACTERS = 1000
"""Of a sentence; what is longer quotes something that nobody reads to its end."""

LEFT_OUT = " ... "
LINE_BREAK = re.compile(r"\s*[\r\n]\s*")


def one_line(text: str) -> str:
    """A text as a line that any terminal can show, whatever it quotes from files.

    Lines are joined, what cannot be printed is escaped, and the middle of a very long text is
    left out: it begins with the place of a mistake and may end with what to do.
    """
    text = LINE_BREAK.sub(" ", text.strip())
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _escaped(char) for char in text)
    if len(text) <= MOST_CHARACTERS:
        return text
    part = MOST_CHARACTERS // 2 - len(LEFT_OUT)
    return f"{text[:part]}{LEFT_OUT}{text[-part:]}"


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode()


class UserError(Exception):
    """Something the user gave cannot be used; the message says what and how to mend it."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class DataError(UserError):
    """A file, folder or graph cannot be used as it is."""


class DivergedError(UserError, FloatingPointError):
    """Training left the range of numbers."""


class ConfigError(UserError):
    """A configuration value or combination is not allowed."""
