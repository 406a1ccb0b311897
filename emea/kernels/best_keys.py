"""The best scores of each row and of each column of a large matrix, collected block by block."""

from typing import NamedTuple

import torch
from torch import Tensor

from emea.kernels import choice
from emea.kernels.numba_calls import arrays, score_loops

GROUP = 64
"""Scores that a compiled loop compares at a time; the columns of a block are whole groups."""

ID_BITS = 32
LAST_ID = 2**31 - 1
LOWEST = -(2**63)
LOWEST_SCORE, HIGHEST_SCORE = -(2**31), 2**31 - 1

LISTS_AT_A_TIME = 2**14
"""Lists that are merged at a time."""


class KeyLists(NamedTuple):
    """Holds lists of keys.

    Args:
        keys: ``[n, 2 * length]`` keys; those after the last one of a list are ``LOWEST``, or not
            among the best.
        sizes: Number of keys of each list.
        least: Score that a further key must exceed, for each list.
    """

    keys: Tensor
    sizes: Tensor
    least: Tensor

    @classmethod
    def empty(cls, number: int, length: int, shape: tuple[int, ...]) -> "KeyLists":
        """Return lists without keys.

        Args:
            number: Number of lists.
            length: Number of keys that are wanted.
            shape: Shape of sizes and scores. It may have more than ``number`` elements, to which
                nothing is ever added.
        """
        least = torch.full(shape, LOWEST_SCORE, dtype=torch.int32)
        least.view(-1)[number:] = HIGHEST_SCORE
        sizes = torch.zeros(shape, dtype=torch.int32)
        return cls(torch.full((number, 2 * length), LOWEST), sizes, least)

    @property
    def length(self) -> int:
        """Number of keys that are wanted."""
        return self.keys.shape[1] // 2

    def add(self, first: int, new: Tensor) -> None:
        """Keep the best of old and new keys.

        Args:
            first: First list.
            new: ``[n, m]`` keys of n lists.
        """
        keys = self.keys[first : first + len(new)]
        best = torch.cat([keys, new], dim=1).topk(self.length, dim=1, sorted=False)
        keys[:, : self.length] = best.values
        keys[:, self.length :] = LOWEST

    def ids(self) -> Tensor:
        """Return ``[n, length]`` ids of the best keys, in any order."""
        best = self.keys.topk(self.length, dim=1, sorted=False).values
        ids: Tensor = LAST_ID - (best & (2**ID_BITS - 1))
        return ids


class BestKeys:
    """Collects the best columns of each row and the best rows of each column.

    A score and an id form one key. Of two equal scores, the one with the lower id is better.

    Args:
        num_rows: Number of rows.
        num_columns: Number of columns.
        lengths: Number of columns to keep per row, and of rows per column.
    """

    def __init__(
        self, num_rows: int, num_columns: int, lengths: tuple[int, int]
    ) -> None:
        self.num_columns = num_columns
        self.rows = KeyLists.empty(num_rows, lengths[0], (num_rows,))
        groups = -(-num_columns // GROUP), GROUP
        self.columns = KeyLists.empty(num_columns, lengths[1], groups)

    def add(self, scores: Tensor, start: int, first_column: int, first_id: int) -> None:
        """Add a block; the blocks of a row must come in the order of the columns, and vice versa.

        Args:
            scores: ``[n, m]`` 32-bit integers. Columns after the last one are ignored; m must be
                a multiple of ``GROUP``.
            start: First row of the block.
            first_column: First column of the block, a multiple of ``GROUP``.
            first_id: Id of row 0.
        """
        if choice.uses_numba(scores):
            self._numba_add(scores, start, first_column, first_id)
        else:
            self._torch_add(scores, start, first_column, first_id)

    def _torch_add(
        self, scores: Tensor, start: int, first_column: int, first_id: int
    ) -> None:
        # a key has the score in its high bits; of equal scores, that of the lower id is larger
        keys = scores[:, : self.num_columns - first_column].long() << ID_BITS
        rows = torch.arange(len(keys))
        columns = torch.arange(keys.shape[1])
        self.rows.add(start, keys | (LAST_ID - first_column - columns))
        self.columns.add(first_column, (keys.T | (LAST_ID - first_id - start - rows)))

    def _numba_add(
        self, scores: Tensor, start: int, first_column: int, first_id: int
    ) -> None:
        groups = scores.view(len(scores), -1, GROUP)
        first = start, first_column // GROUP, first_id
        lists = arrays(*self.rows), arrays(*self.columns)
        score_loops().keep_best(groups.numpy(), first, *lists)

    def merge_columns(self, other: "BestKeys") -> None:
        """Add the best rows of each column of other rows."""
        for first in range(0, self.num_columns, LISTS_AT_A_TIME):
            self.columns.add(first, other.columns.keys[first : first + LISTS_AT_A_TIME])
