"""Reads tab-separated files of ids and names. Errors name the file and the line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from emea.data.arrays import IntArray
from emea.data.formats.files import byte_stream
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
        return _error_at(self.label, row, message)

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

    def integers(self, column: int) -> list[int]:
        """Return a column of integer ids."""
        cells = self.columns[column]
        try:
            ids = list(map(int, cells))
        except ValueError:
            raise self._not_an_id(cells) from None
        # Python reads 1_0 as ten, which data files do not use.
        if min(ids) < -INT64_LIMIT or max(ids) >= INT64_LIMIT or "_" in "".join(cells):
            raise self._not_an_id(cells)
        return ids

    def names(self, column: int) -> list[str]:
        """Return a column of names, none of them empty."""
        cells = self.columns[column]
        if "" in cells:
            raise self.error(cells.index(""), f"column {column + 1} is empty")
        return cells

    def _not_an_id(self, cells: list[str]) -> DataError:
        row = next(row for row, cell in enumerate(cells) if not _is_id(cell))
        return self.error(row, f"expected an integer id, found {cells[row]!r}")


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


def table_of(content: bytes, num_columns: int, label: str) -> TabTable:
    """Return the cells of a tab-separated file with this content, as ``read_table`` does."""
    lines = _text(content, label).split("\n")
    _check_width(lines, num_columns, label)
    cells = "\t".join(lines).split("\t")
    return TabTable(label, tuple(cells[column::num_columns] for column in range(num_columns)))


def _text(content: bytes, label: str) -> str:
    try:
        # Do not use str.splitlines: names may contain separators such as U+2028.
        text = content.decode("utf-8").replace("\r\n", "\n").rstrip("\r\n")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start)
        raise _error_at(label, row, f"byte 0x{content[error.start]:02x} is not UTF-8") from error
    if not text:
        raise _error_at(label, 0, "the file is empty")
    return text


def _check_width(lines: list[str], num_columns: int, label: str) -> None:
    tabs = num_columns - 1
    if all(line.count("\t") == tabs for line in lines):
        return
    row = next(row for row, line in enumerate(lines) if line.count("\t") != tabs)
    found = lines[row].count("\t") + 1 if lines[row] else "a blank line"
    raise _error_at(label, row, f"expected {num_columns} tab-separated columns, found {found}")


def _is_id(cell: str) -> bool:
    try:
        return -INT64_LIMIT <= int(cell) < INT64_LIMIT and "_" not in cell
    except ValueError:
        return False


def _error_at(label: str, row: int, message: str) -> DataError:
    return DataError(f"{label}, line {row + 1}: {message}")


Key = TypeVar("Key", int, str)


class Vocabulary(Generic[Key]):
    """Numbers keys from zero in order of first appearance.

    Args:
        keys: The names or ids of entities or relations in the files. Repetitions count once.
        what: The kind of object that a key identifies, for error messages.
        home: The file that defines the keys, for error messages.
    """

    def __init__(self, keys: Iterable[Key], what: str, home: str) -> None:
        self.keys: list[Key] = list(dict.fromkeys(keys))
        self._ids: dict[Key, int] = {key: number for number, key in enumerate(self.keys)}
        self._what = what
        self._home = home

    def __len__(self) -> int:
        return len(self.keys)

    def ids(self, keys: Sequence[Key], table: TableRows) -> IntArray:
        """Return the numbers of the keys in a column.

        Raises:
            DataError: A key is unknown. The error names its line.
        """
        try:
            return np.array(list(map(self._ids.__getitem__, keys)), dtype=np.int64)
        except KeyError:
            row = next(row for row, key in enumerate(keys) if key not in self._ids)
        raise table.error(row, f"unknown {self._what} {keys[row]} (not in {self._home})")


def check_listed_once(keys: Sequence[Key], table: TableRows) -> None:
    """Raise an error if a column of entities contains one of them twice."""
    if len(set(keys)) == len(keys):
        return
    seen: dict[Key, int] = {}
    for row, key in enumerate(keys):
        if key in seen:
            raise table.error(row, f"entity {key} is already listed in line {seen[key] + 1}")
        seen[key] = row
