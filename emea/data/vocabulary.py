"""Contiguous ids for the entities or relations of one side."""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np

from emea.data.arrays import IntArray
from emea.data.tab_file import TabTable

Key = TypeVar("Key", int, str)


class Vocabulary(Generic[Key]):
    """Numbers keys from zero in order of first appearance.

    Args:
        keys: what the files call the entities or relations; repetitions count once.
        what: what a key stands for, in error messages.
        home: where the keys come from, in error messages.
    """

    def __init__(self, keys: Iterable[Key], what: str, home: str) -> None:
        self.keys: list[Key] = list(dict.fromkeys(keys))
        self._ids: dict[Key, int] = {key: number for number, key in enumerate(self.keys)}
        self._what = what
        self._home = home

    def __len__(self) -> int:
        return len(self.keys)

    def ids(self, keys: Sequence[Key], table: TabTable) -> IntArray:
        """The ids of a table's column.

        Raises:
            DataError: a key is unknown; the error names its line.
        """
        try:
            return np.array(list(map(self._ids.__getitem__, keys)), dtype=np.int64)
        except KeyError:
            row = next(row for row, key in enumerate(keys) if key not in self._ids)
        raise table.error(row, f"unknown {self._what} {keys[row]} (not in {self._home})")


def check_listed_once(keys: Sequence[Key], what: str, table: TabTable) -> None:
    """Refuse a listing that holds a key twice."""
    if len(set(keys)) == len(keys):
        return
    seen: dict[Key, int] = {}
    for row, key in enumerate(keys):
        if key in seen:
            raise table.error(row, f"{what} {key} is already listed in line {seen[key] + 1}")
        seen[key] = row
