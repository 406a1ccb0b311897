"""Reads tab-separated files of names or integer ids. Errors name the file and the line."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emea.data.arrays import IntArray
from emea.data.formats.input_file import byte_stream
from emea.data.formats.limits import explained_failures
from emea.errors import DataError

INT64_LIMIT = 2**63


@dataclass(frozen=True, eq=False)
class TableRows:
    """Base class of tables read from a file, which formats errors with the file and the line.

    Row ``i`` is line ``i + 1`` of the file.

    Args:
        label: The name of the file in messages.
    """

    label: str

    def error(self, row: int, message: str) -> DataError:
        """Return an error about one row. The caller raises it."""
        return DataError(f"{self.place(row)}: {message}")

    def place(self, row: int) -> str:
        """Return the file and the line of a row, for messages."""
        return f"{self.label}, line {row + 1}"


@dataclass(frozen=True, eq=False)
class TabTable(TableRows):
    """The cells of a tab-separated file.

    Args:
        label: The name of the file in messages.
        columns: The cells, one list per column.
    """

    columns: tuple[list[str], ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def pairs(self) -> list[tuple[str, str]]:
        """Return the first two cells of each line."""
        return list(zip(self.columns[0], self.columns[1], strict=True))

    def integers(self, column: int) -> IntArray:
        """Return a column of integer ids."""
        cells = self.columns[column]
        with suppress(ValueError, OverflowError):
            # Python reads 1_0 as ten, which data files do not use.
            if "_" not in "".join(cells):
                return np.array(list(map(int, cells)), dtype=np.int64)
        row = next(row for row, cell in enumerate(cells) if not _is_id(cell))
        raise self.error(row, f"expected an integer id, found {cells[row]!r}")

    def names(self, column: int) -> list[str]:
        """Return a column of names, none of them empty."""
        cells = self.columns[column]
        if "" in cells:
            raise self.error(cells.index(""), f"column {column + 1} is empty")
        return cells


def read_table(path: Path, num_columns: int, label: str | None = None) -> TabTable:
    """Read a tab-separated file.

    The file is UTF-8, with or without a byte order mark, with LF or CRLF. The newline of the last
    line may be missing, and blank lines may follow it.

    Args:
        path: The file.
        num_columns: The number of columns in each line.
        label: The name of the file in messages. The default is the file name.

    Raises:
        DataError: The file is missing, empty or not UTF-8, or a line has another number of columns.
    """
    with explained_failures(path):
        return table_of(read_bytes(path), num_columns, label or path.name)


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, without a byte order mark."""
    with byte_stream(path) as stream:
        return stream.read()


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file, which may be empty.

    Raises:
        DataError: The file is missing or not UTF-8.
    """
    with explained_failures(path):
        content = read_bytes(path)
        return _text(content, path.name).split("\n") if content.strip() else []


def table_of(content: bytes, num_columns: int, label: str) -> TabTable:
    """Return the cells of a tab-separated file with this content, as ``read_table`` does."""
    lines = _text(content, label).split("\n")
    widths = [line.count("\t") + 1 for line in lines]
    if set(widths) != {num_columns}:
        row = next(row for row, width in enumerate(widths) if width != num_columns)
        found = widths[row] if lines[row] else "a blank line"
        raise TableRows(label).error(
            row, f"expected {num_columns} tab-separated columns, found {found}"
        )
    cells = "\t".join(lines).split("\t")
    return TabTable(
        label, tuple(cells[column::num_columns] for column in range(num_columns))
    )


def _text(content: bytes, label: str) -> str:
    try:
        # Do not use str.splitlines: names may contain separators such as U+2028.
        text = content.decode("utf-8").replace("\r\n", "\n").rstrip("\r\n")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start)
        raise TableRows(label).error(
            row, f"byte 0x{content[error.start]:02x} is not UTF-8"
        ) from error
    if not text:
        raise TableRows(label).error(0, "the file is empty")
    return text


def _is_id(cell: str) -> bool:
    try:
        return -INT64_LIMIT <= int(cell) < INT64_LIMIT and "_" not in cell
    except ValueError:
        return False


DIGITS, TAB, NEWLINE = b"0123456789", ord("\t"), ord("\n")
MAX_DIGITS = 18
"""Numbers with at most this many digits fit in 64 bits."""


def read_ids(path: Path, num_columns: int) -> tuple[TableRows, IntArray]:
    """Read a tab-separated file of integer ids, with the layout that ``read_table`` accepts.

    Returns:
        The rows, for messages, and their ids, ``[num_lines, num_columns]``.

    Raises:
        DataError: The file is missing, empty or not UTF-8, a line has another number of columns, or
            a cell is not an integer id.
    """
    with explained_failures(path):
        content = read_bytes(path)
        values = parsed_ids(content, num_columns)
        if values is None:
            table = table_of(content, num_columns, path.name)
            values = np.stack(
                [table.integers(column) for column in range(num_columns)], axis=1
            )
        return TableRows(path.name), values


def parsed_ids(content: bytes, num_columns: int) -> IntArray | None:
    """Return the ids of lines that contain only digits and tabs, ``[num_lines, num_columns]``.

    Returns:
        The ids, or ``None`` if the content has another layout, an error or a very large number.
    """
    text = content.rstrip(b"\n")
    if not text or text.translate(None, DIGITS + b"\t\n"):
        return None
    characters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(characters < DIGITS[0])
    if (len(ends) + 1) % num_columns:
        return None
    marks = np.append(characters[ends], NEWLINE).reshape(-1, num_columns)
    lengths = np.diff(ends, prepend=-1, append=len(text)) - 1
    if (marks != [TAB] * (num_columns - 1) + [NEWLINE]).any():
        return None
    if lengths.min() < 1 or lengths.max() > MAX_DIGITS:
        return None
    return np.fromstring(text.decode(), dtype=np.int64, sep=" ").reshape(
        -1, num_columns
    )


class IdNumbers:
    """Numbers integer ids from zero.

    Args:
        keys: The ids in the files, in the order of their numbers, without repetitions.
        what: The kind of object that an id identifies, for error messages.
        home: The file that defines the ids, for error messages.
    """

    def __init__(self, keys: IntArray, what: str, home: str) -> None:
        self.keys = keys
        self._what = what
        self._home = home
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]

    def of(self, ids: IntArray, table: TableRows) -> IntArray:
        """Return the numbers of the ids in a column.

        Raises:
            DataError: An id is unknown. The error names its line.
        """
        places = np.searchsorted(self._sorted, ids).clip(max=len(self.keys) - 1)
        numbers: IntArray = self._order[places]
        is_known = self.keys[numbers] == ids
        if not is_known.all():
            row = int(np.argmin(is_known))
            raise table.error(
                row, f"unknown {self._what} {ids[row]} (not in {self._home})"
            )
        return numbers


def number_of(cell: str) -> float:
    """Return the number in a cell. Python would also read ``0_1`` and digits of other scripts.

    Raises:
        ValueError: The cell is not a number.
    """
    if "_" in cell or not cell.isascii():
        raise ValueError(f"{cell} is not a number")
    return float(cell)
