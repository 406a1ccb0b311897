"""The lines of one row, to be read again where they turn out to be several rows."""

import csv
from collections import deque
from typing import IO

MAX_LINES = 100
"""Lines of a row; more is a quote that was never closed. Each bad line may cost so many."""


class LinesOfRow:
    """Lines for a parser of rows, which can be read again from the second line of a row on.

    A quote that is never closed makes one row of all that follows it; only its first line is bad.

    Args:
        text: the file.
        after: lines of it that were read before.

    Attributes:
        last: number of the line that was read last.
    """

    def __init__(self, text: IO[str], after: int = 0) -> None:
        self.last = after
        self._text = text
        self._row: list[str] = []
        self._again: deque[str] = deque()

    def __iter__(self) -> "LinesOfRow":
        return self

    def __next__(self) -> str:
        if len(self._row) == MAX_LINES:
            raise csv.Error("too many lines")
        line = self._again.popleft() if self._again else next(self._text)
        self._row.append(line)
        self.last += 1
        return line

    @property
    def num_lines(self) -> int:
        """Lines of the row so far."""
        return len(self._row)

    @property
    def first(self) -> int:
        """Number of the row's first line."""
        return self.last - len(self._row) + 1

    def begin_row(self) -> None:
        """The next line is the first of a row."""
        self._row.clear()

    def go_back(self) -> None:
        """The next line is the row's second."""
        self.last = self.first
        self._again.extendleft(reversed(self._row[1:]))
