"""Rows of tab- or comma-separated files, with their lines."""

import csv
import io
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

from emea.data.formats.files import BadLines, byte_stream
from emea.data.formats.limits import current_limits, limit_error

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


UNWRITABLE = re.compile(r"[\t\r\n]")
ESCAPED_BYTE = re.compile(r"[\ud800-\udfff]")
"""What stands for a byte that is no UTF-8."""

UNUSABLE = re.compile(r"[\t\r\n\ud800-\udfff]")

MAX_CELL = 1 << 24
"""Characters in a cell; more is a quote that was never closed."""

UNCLOSED = "a quote is opened in this row and not closed at the end of a cell"
NO_END = "unexpected end of data"
"""What the parser says where a file ends within quotes."""


class Row(NamedTuple):
    """Cells of a row, the line on which it ends, and cells of attribute columns that are filled."""

    line: int
    cells: list[str]
    attributes: Sequence[tuple[str, str]] = ()


class Columns(NamedTuple):
    """Where the wanted cells stand.

    Args:
        names: what a header may call each wanted column.
        places: of the wanted columns.
        width: cells of each row.
        attributes: name and place of each attribute column.
    """

    names: Sequence[Sequence[str]]
    places: tuple[int, ...]
    width: int
    attributes: Sequence[tuple[str, int]] = ()

    @classmethod
    def without_header(cls, names: Sequence[Sequence[str]]) -> "Columns":
        """The wanted columns and no others, in their order."""
        return cls(names, tuple(range(len(names))), len(names))

    def from_header(self, cells: Sequence[str], attributes: Sequence[str] = ()) -> "Columns | None":
        """The columns by the names in a first row; ``None`` where it is no header.

        A row is a header where each wanted column is named in it; case does not matter. Other
        columns are not read, except for those that are marked as attributes.
        """
        given = [cell.strip().lower() for cell in cells]
        places = [
            next((given.index(name) for name in choices if name in given), None)
            for choices in self.names
        ]
        found = tuple(place for place in places if place is not None)
        if len(found) < len(places):
            return None
        stripped = [cell.strip() for cell in cells]
        marked = [(name, stripped.index(name)) for name in attributes if name in stripped]
        return Columns(self.names, found, len(cells), marked)

    def attribute_cells(self, cells: Sequence[str]) -> list[tuple[str, str]]:
        """Name and text of the attribute columns that are filled."""
        return [(name, cells[place]) for name, place in self.attributes if cells[place]]


def wanted_cells(
    path: Path,
    file_format: str,
    names: Sequence[Sequence[str]],
    bad: BadLines,
    attributes: Sequence[str] = (),
) -> Iterator[Row]:
    """The wanted cells of each row, none of them empty.

    Blank lines are passed over.

    Args:
        path: the file, packed where its name ends in ``.gz``.
        file_format: ``tsv`` (a cell ends at a tab, whatever is in it) or ``csv`` (quotes hold
            commas).
        names: what a header may call each wanted column.
        bad: counts rows that cannot be used.
        attributes: further columns to read; their cells may be empty.
    """
    columns, limits = Columns.without_header(names), current_limits()
    for number, row in enumerate(rows(path, file_format, bad)):
        if len(row.cells) > limits.columns:
            raise limit_error(path, f"the number of columns in line {row.line}", "columns", limits)
        header = columns.from_header(row.cells, attributes) if number == 0 else None
        if header is not None:
            columns = header
        elif (problem := _problem(row.cells, columns)) is not None:
            bad.add(row.line, problem)
        else:
            cells = [row.cells[place] for place in columns.places]
            yield Row(row.line, cells, columns.attribute_cells(row.cells))


def rows(path: Path, file_format: str, bad: BadLines, after: int = 0) -> Iterator[Row]:
    """All rows that are not blank, after as many lines that are no rows."""
    with _text(path, file_format) as text:
        for _ in islice(text, after):
            pass
        yield from _tab_rows(text, after) if file_format == "tsv" else _comma_rows(text, bad, after)


def lines(path: Path, file_format: str) -> Iterator[str]:
    """All lines as they stand, without their ends."""
    with _text(path, file_format) as text:
        yield from (line.rstrip("\r\n") for line in text)


@contextmanager
def _text(path: Path, file_format: str) -> Iterator[IO[str]]:
    with byte_stream(path) as stream:
        # a name may hold what Python takes for the end of a line; csv looks for it itself
        newline = "\n" if file_format == "tsv" else ""
        # what is no UTF-8 passes here and is told with its line
        yield io.TextIOWrapper(stream, "utf-8", errors="surrogateescape", newline=newline)


def _tab_rows(text: IO[str], after: int) -> Iterator[Row]:
    for number, line in enumerate(text, after + 1):
        if line := line.removesuffix("\n").removesuffix("\r"):
            yield Row(number, line.split("\t"))


def _comma_rows(text: IO[str], bad: BadLines, after: int) -> Iterator[Row]:
    csv.field_size_limit(MAX_CELL)
    taken = LinesOfRow(text, after)
    reader = csv.reader(taken, strict=True)
    while True:
        taken.begin_row()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            is_open = taken.num_lines > 1 or str(error) == NO_END
            bad.add(taken.first, UNCLOSED if is_open else str(error))
            taken.go_back()
            reader = csv.reader(taken, strict=True)
            continue
        if cells:
            yield Row(taken.last, cells)


def _problem(cells: Sequence[str], columns: Columns) -> str | None:
    """Why a row cannot be used."""
    if len(cells) != columns.width:
        return f"expected {columns.width} columns, found {len(cells)}"
    if "" not in cells and not UNUSABLE.search("".join(cells)):
        return None  # all at once: most rows have nothing to look for
    for place in columns.places:
        if (problem := name_problem(cells[place])) is not None:
            return f"column {place + 1} {problem}"
    return None


def name_problem(name: str) -> str | None:
    """Why a name cannot be used; what a run answers is written line by line, name by name."""
    if not name:
        return "is empty"
    if UNWRITABLE.search(name):
        return "holds a tab or a line break"
    return "is not UTF-8" if ESCAPED_BYTE.search(name) else None
