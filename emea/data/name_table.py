"""Numbers for names while a file is read."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np

from emea.data.arrays import IntArray

Name = TypeVar("Name", bound=Hashable)


class NameTable(dict[Name, int]):
    """Gives each name that is looked up a number, from zero in order of first appearance.

    A dict that fills itself: looking up in it is all that happens to most names of a large file.
    """

    def __missing__(self, name: Name) -> int:
        number = len(self)
        self[name] = number
        return number

    def numbers(self, names: Sequence[Name]) -> IntArray:
        """The numbers of some names."""
        return np.fromiter(map(self.__getitem__, names), np.int64, len(names))

    def since(self, size: int) -> Iterator[Name]:
        """The names that came after the first ones, the last of them first."""
        return islice(reversed(self), len(self) - size)

    def forget(self, size: int) -> None:
        """Keep the first names alone."""
        while len(self) > size:
            self.popitem()
