"""Reads rows of tab- or comma-separated files, with their line numbers."""

import csv
import io
import logging
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

from emea.data.formats.input_file import BadLines, byte_stream
from emea.data.formats.limits import current_limits, limit_error
from emea.errors import DataError

log = logging.getLogger(__name__)

MAX_LINES = 100
"""Maximum number of lines of a row. A longer row has a quote that is never closed."""


UNWRITABLE = re.compile(r"[\t\r\n]")
ESCAPED_BYTE = re.compile(r"[\ud800-\udfff]")
"""Characters that represent a byte that is not UTF-8."""

UNUSABLE = re.compile(r"[\t\r\n\ud800-\udfff]")

MAX_CELL = 1 << 24
"""Maximum number of characters in a cell. A longer cell has a quote that is never closed."""

UNCLOSED = "a quote is opened in this row and not closed at the end of a cell"
NO_END = "unexpected end of data"
"""Message of the CSV parser if a file ends inside quotes."""


class Row(NamedTuple):
    """The wanted cells of a row, the number of its last line, and its attribute cells."""

    line: int
    cells: list[str]
    attributes: Sequence[tuple[str, str]] = ()


class Columns(NamedTuple):
    """The positions of the wanted columns in a table.

    Args:
        names: The names that a header may give to each wanted column.
        places: The positions of the wanted columns.
        width: The number of cells in each row.
        attributes: The name and the position of each attribute column.
    """

    names: Sequence[Sequence[str]]
    places: tuple[int, ...]
    width: int
    attributes: Sequence[tuple[str, int]] = ()

    @classmethod
    def without_header(cls, names: Sequence[Sequence[str]]) -> "Columns":
        """Return the positions for a table that has exactly the wanted columns, in order."""
        return cls(names, tuple(range(len(names))), len(names))

    def from_header(
        self, cells: Sequence[str], attributes: Sequence[str] = ()
    ) -> "Columns | None":
        """Return the positions according to the first row, or ``None`` if it is not a header.

        A row is a header if it names each wanted column. Case does not matter. Other columns are
        not read, except for those that are marked as attributes.
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
        marked = [
            (name, stripped.index(name)) for name in attributes if name in stripped
        ]
        return Columns(self.names, found, len(cells), marked)

    def problem(self, cells: Sequence[str]) -> str | None:
        """Return why a row cannot be used, or ``None``."""
        if len(cells) != self.width:
            hint = "; .csv files separate columns by commas, .tsv files by tabs"
            hint += ", but the line has semicolons" if ";" in cells[0] else ""
            return f"expected {self.width} columns, found {len(cells)}{hint * (len(cells) == 1)}"
        if "" not in cells and not UNUSABLE.search("".join(cells)):
            return None  # one check of the whole row, since most rows are good
        for place in self.places:
            if (problem := name_problem(cells[place])) is not None:
                return f"column {place + 1} {problem}"
        for name, place in self.attributes:
            if ESCAPED_BYTE.search(cells[place]):
                return f"column {name} is not UTF-8"
        return None

    def wanted(self, row: Row) -> Row:
        """Return the wanted cells of a row that has all cells."""
        cells = [row.cells[place] for place in self.places]
        attributes = [
            (name, row.cells[at]) for name, at in self.attributes if row.cells[at]
        ]
        return Row(row.line, cells, attributes)


def wanted_cells(
    path: Path,
    file_format: str,
    names: Sequence[Sequence[str]],
    bad: BadLines,
    *,
    attributes: Sequence[str] = (),
    is_latin: bool = False,
) -> Iterator[Row]:
    """Yield the wanted cells of each row, none of them empty.

    Blank lines are ignored.

    Args:
        path: The file. A ``.gz`` file is decompressed while it is read.
        file_format: ``tsv``, in which every tab ends a cell, or ``csv``, in which quoted cells may
            contain commas.
        names: The names that a header may give to each wanted column.
        bad: Handles rows that cannot be used.
        attributes: Further columns to read. Their cells may be empty.
        is_latin: Whether to read cells that are not UTF-8 as Windows-1252, which includes Latin-1.
    """
    columns = Columns.without_header(names)
    limits = current_limits()
    is_repaired = False
    for number, row in enumerate(rows(path, file_format, bad)):
        if is_latin and ESCAPED_BYTE.search("".join(row.cells)):
            row = Row(row.line, list(map(from_latin, row.cells)))
            if not is_repaired:
                log.warning(
                    "%s, line %d is not UTF-8. Such cells are read as Latin-1. Save the file as "
                    "UTF-8 if that is wrong.",
                    path.name,
                    row.line,
                )
            is_repaired = True
        if len(row.cells) > limits.columns:
            raise limit_error(
                path, f"the number of columns in line {row.line}", "columns", limits
            )
        header = columns.from_header(row.cells, attributes) if number == 0 else None
        if header is not None:
            columns = header
            _check_names(path, row.cells, columns)
        elif (problem := columns.problem(row.cells)) is not None:
            bad.add(row.line, problem)
        else:
            yield columns.wanted(row)


def from_latin(cell: str) -> str:
    """Return the text of a cell whose bytes are not UTF-8; other cells are returned unchanged."""
    if not ESCAPED_BYTE.search(cell):
        return cell
    return cell.encode("utf-8", "surrogateescape").decode("cp1252", "replace")


def _check_names(path: Path, header: Sequence[str], columns: Columns) -> None:
    """Refuse a header that names a wanted column twice."""
    attributes = [place for _, place in columns.attributes]
    exact = [cell.strip() for cell in header]
    lower = [cell.lower() for cell in exact]
    for place in (*columns.places, *attributes):
        # case only matters for the names of attributes
        given = exact if place in attributes else lower
        if given.count(given[place]) > 1:
            raise DataError(
                f"{path.name} has more than one column {header[place]}. Rename the others."
            )


def rows(path: Path, file_format: str, bad: BadLines, after: int = 0) -> Iterator[Row]:
    """Yield all rows that are not blank, after skipping the first ``after`` lines."""
    with _text(path, file_format) as text:
        for _ in islice(text, after):
            pass
        if file_format == "tsv":
            yield from _tab_rows(text, after)
        else:
            yield from _comma_rows(text, bad, after)


def lines(path: Path, file_format: str) -> Iterator[str]:
    """Yield all lines without their line ends."""
    with _text(path, file_format) as text:
        yield from (line.rstrip("\r\n") for line in text)


@contextmanager
def _text(path: Path, file_format: str) -> Iterator[IO[str]]:
    with byte_stream(path) as stream:
        # Names may contain characters that Python treats as line ends. csv splits lines itself.
        newline = "\n" if file_format == "tsv" else ""
        # Bytes that are not UTF-8 are kept here and reported later with their line number.
        yield io.TextIOWrapper(
            stream, "utf-8", errors="surrogateescape", newline=newline
        )


def _tab_rows(text: IO[str], after: int) -> Iterator[Row]:
    """Yield the rows of a TSV file: every tab ends a cell, and every line is a row."""
    for number, line in enumerate(text, after + 1):
        if line := line.removesuffix("\n").removesuffix("\r"):
            yield Row(number, line.split("\t"))


def _comma_rows(text: IO[str], bad: BadLines, after: int) -> Iterator[Row]:
    """Yield the rows of a CSV file.

    A quote that is never closed joins all following lines to one row. Only the first line of such
    a row is bad, so the others are read again.
    """
    csv.field_size_limit(MAX_CELL)
    taken: list[str] = []  # the lines of the current row
    again: deque[str] = deque()

    def lines_of_row() -> Iterator[str]:
        while (line := again.popleft() if again else next(text, None)) is not None:
            if len(taken) == MAX_LINES:
                again.appendleft(line)
                raise csv.Error("too many lines")
            taken.append(line)
            yield line

    reader = csv.reader(lines_of_row(), strict=True)
    last = after
    while True:
        taken.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            is_open = len(taken) > 1 or str(error) == NO_END
            last += 1
            bad.add(last, UNCLOSED if is_open else str(error))
            again.extendleft(reversed(taken[1:]))
            reader = csv.reader(lines_of_row(), strict=True)
            continue
        last += len(taken)
        if cells:
            yield Row(last, cells)


def name_problem(name: str) -> str | None:
    """Return why a name cannot be used, or ``None``. Results are written to tab-separated files."""
    if not name:
        return "is empty"
    if UNWRITABLE.search(name):
        return "contains a tab or a line break"
    return "is not UTF-8" if ESCAPED_BYTE.search(name) else None


def check_same_ids(label: str, types: Mapping[str, object]) -> None:
    """Refuse a table whose heads are integers and whose tails are floats, or the other way round.

    1 and 1.0 would be two entities. pandas turns integers into floats if a cell was missing, even
    if its row is dropped later.

    Args:
        label: The name of the table.
        types: The types of the columns of heads and tails, of pandas or pyarrow.

    Raises:
        DataError: There are both.
    """
    integers, floats = (
        [name for name, kind in types.items() if re.match(pattern, str(kind).lower())]
        for pattern in (r"u?int\d", r"(half)?float|double")
    )
    if integers and floats:
        raise DataError(
            f"{label}: column {integers[0]} contains integers and column {floats[0]} contains "
            f"floats, so that 1 and 1.0 would be two entities. Convert {floats[0]} to integers."
        )
