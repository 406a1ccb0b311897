"""Reads tab-separated files of integer ids into arrays, and numbers the ids."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emea.data.arrays import IntArray
from emea.data.formats.limits import explained_failures
from emea.data.formats.tab_file import TableRows, read_bytes, table_of

DIGITS, TAB, NEWLINE = b"0123456789", ord("\t"), ord("\n")
MAX_DIGITS = 18
"""Numbers with at most this many digits fit in 64 bits."""

SPARSE = 8
"""A table from ids to numbers may have this many slots for each id."""


@dataclass(frozen=True, eq=False)
class IdTable(TableRows):
    """The ids of a tab-separated file. Row ``i`` is line ``i + 1`` of the file.

    Args:
        label: The name of the file in messages.
        values: ``[num_lines, num_columns]`` the ids.
    """

    values: IntArray


def read_ids(path: Path, num_columns: int) -> IdTable:
    """Read a tab-separated file of integer ids, with the layout that ``read_table`` accepts.

    Raises:
        DataError: The file is missing, empty or not UTF-8, a line has another number of columns, or
            a cell is not an integer id.
    """
    with explained_failures(path):
        content = read_bytes(path)
        values = parsed_ids(content, num_columns)
        if values is None:
            table = table_of(content, num_columns, path.name)
            columns = [table.integers(column) for column in range(num_columns)]
            values = np.array(columns, dtype=np.int64).T
        return IdTable(path.name, values)


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
    return np.fromstring(text.decode(), dtype=np.int64, sep=" ").reshape(-1, num_columns)


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
        self._first, self._last = int(keys.min()), int(keys.max())
        span = self._last - self._first + 1
        self._is_dense = span <= SPARSE * len(keys)
        if self._is_dense:
            self._table = np.full(span, -1, dtype=np.int64)
            self._table[keys - self._first] = np.arange(len(keys))
        else:
            self._order = np.argsort(keys)
            self._sorted = keys[self._order]

    def __len__(self) -> int:
        return len(self.keys)

    def of(self, ids: IntArray, table: TableRows) -> IntArray:
        """Return the numbers of the ids in a column.

        Raises:
            DataError: An id is unknown. The error names its line.
        """
        is_known = (ids >= self._first) & (ids <= self._last)
        # unknown ids are looked up as the first one
        inside = np.where(is_known, ids, self._first)
        numbers: IntArray
        if self._is_dense:
            numbers = self._table[inside - self._first]
        else:
            numbers = self._order[np.searchsorted(self._sorted, inside)]
        is_known &= self.keys[numbers] == ids
        if not is_known.all():
            row = int(np.argmin(is_known))
            raise table.error(row, f"unknown {self._what} {ids[row]} (not in {self._home})")
        return numbers
