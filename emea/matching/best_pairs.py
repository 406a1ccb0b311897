"""The pairs with the best products of each row and of each column, by vectors of 8-bit integers.

All pairs are compared once, in blocks. On processors without instructions for 8-bit integers, the
products have single precision.
"""

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
from torch import Tensor

from emea.matching.compiled import arrays, loops
from emea.runtime import kernels
from emea.runtime.threads import available_threads, index_ranges, one_thread

GROUP = 64
"""Scores that a compiled loop compares at a time; the columns of a block are whole groups."""

ROWS_PER_BLOCK, COLUMNS_PER_BLOCK = 512, 16 * GROUP
"""Pairs that are compared at a time. Their scores (2 MB) stay in the cache."""

MIN_ROWS_PER_THREAD = 256
"""Rows below which another thread does not save time: each has lists for all columns."""

ID_BITS = 32
LAST_ID = 2**31 - 1
LOWEST = -(2**63)
LOWEST_SCORE, HIGHEST_SCORE = -(2**31), 2**31 - 1

ROWS_AT_A_TIME = 2**14
"""Lists that are merged, and vectors that are rounded, at a time."""

LARGEST = 127
"""Largest 8-bit coordinate."""

WIDTH = 4.5
"""Standard deviations of a coordinate that 8 bits represent; larger coordinates are cut off."""

ALIGNED = 16
"""The number of 8-bit coordinates is a multiple of this, filled up with zeros."""

TORCH_INSTRUCTIONS = ("avx512_vnni", "avx_vnni", "amx_int8")
"""Processor features that make products of 8-bit integers exact and fast in torch."""

LOOP_INSTRUCTIONS = ("dot",)
"""Processor features that make them fast in the compiled loop: ARM's dot product."""


def best_pairs(rows: Tensor, columns: Tensor, lengths: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return the columns with the best products of each row, and the rows of each column.

    Args:
        rows: ``[num_rows, dim]`` unit vectors.
        columns: ``[num_columns, dim]`` unit vectors.
        lengths: Number of columns per row, and of rows per column.
    """
    num_rows, num_columns = len(rows), len(columns)
    compressed = rounded if has_fast_int8() else Tensor.float
    rows, columns = compressed(rows), compressed(columns)
    columns = torch.nn.functional.pad(columns, (0, 0, 0, -num_columns % GROUP))
    num_threads = max(1, min(available_threads(), num_rows // MIN_ROWS_PER_THREAD))
    parts = index_ranges(num_rows, num_threads)
    kept = [BestKeys(last - first, num_columns, lengths) for first, last in parts]

    def compare(part: int) -> None:
        torch.set_num_threads(1)  # of this thread
        first, last = parts[part]
        _compare(rows[first:last], columns, first, kept[part])

    with one_thread(), ThreadPoolExecutor(num_threads) as threads:
        list(threads.map(compare, range(num_threads)))
    for other in kept[1:]:
        kept[0].merge_columns(other)
    return torch.cat([part.rows.ids() for part in kept]), kept[0].columns.ids()


def _compare(rows: Tensor, columns: Tensor, first: int, kept: "BestKeys") -> None:
    """Add the scores of all pairs in blocks.

    Args:
        rows: Vectors of some rows.
        columns: Vectors of all columns, padded to whole groups.
        first: Number of the first row.
        kept: The best pairs.
    """
    is_int8 = rows.dtype == torch.int8
    block = torch.empty(
        ROWS_PER_BLOCK * COLUMNS_PER_BLOCK, dtype=torch.int32 if is_int8 else rows.dtype
    )
    for start in range(0, len(rows), ROWS_PER_BLOCK):
        some = rows[start : start + ROWS_PER_BLOCK]
        for first_column in range(0, len(columns), COLUMNS_PER_BLOCK):
            others = columns[first_column : first_column + COLUMNS_PER_BLOCK]
            scores = block[: len(some) * len(others)].view(len(some), -1)
            if is_int8:
                write_products(some, others, scores)
            else:
                # integers in the same order; the bits of negative numbers are in the opposite one
                scores = torch.mm(some, others.T, out=scores).view(torch.int32)
                scores.bitwise_xor_((scores >> 31).bitwise_and_(0x7FFFFFFF))
            kept.add(scores, start, first_column, first)


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

    def __init__(self, num_rows: int, num_columns: int, lengths: tuple[int, int]) -> None:
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
        if kernels.uses_numba(scores):
            groups = scores.view(len(scores), -1, GROUP)
            first = start, first_column // GROUP, first_id
            lists = arrays(*self.rows), arrays(*self.columns)
            loops().keep_best(groups.numpy(), first, *lists)
            return
        keys = scores[:, : self.num_columns - first_column].long() << ID_BITS
        rows, columns = torch.arange(len(keys)), torch.arange(keys.shape[1])
        self.rows.add(start, keys | (LAST_ID - first_column - columns))
        self.columns.add(first_column, (keys.T | (LAST_ID - first_id - start - rows)))

    def merge_columns(self, other: "BestKeys") -> None:
        """Add the best rows of each column of other rows."""
        for first in range(0, self.num_columns, ROWS_AT_A_TIME):
            self.columns.add(first, other.columns.keys[first : first + ROWS_AT_A_TIME])


def has_fast_int8() -> bool:
    """Return whether products of 8-bit integers are exact and fast on this processor."""
    if hasattr(torch, "_int_mm") and _has(TORCH_INSTRUCTIONS):
        return True
    return _has(LOOP_INSTRUCTIONS) and kernels.uses_numba(torch.empty(0))


@functools.cache
def _has(features: tuple[str, ...]) -> bool:
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(map(capabilities.get, features))


def rounded(vectors: Tensor) -> Tensor:
    """Return unit vectors in 8-bit integers, ``[n, aligned dim]``, in units of ``unit_length``.

    The vectors are rotated at random, so that all coordinates have a similar range. The rotation
    depends on the number of coordinates only. Coordinates out of the range of 8 bits are cut off.

    Args:
        vectors: ``[n, dim]`` unit vectors.
    """
    dim = vectors.shape[1]
    generator = torch.Generator().manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(dim, dim, generator=generator)).Q
    rotation = torch.nn.functional.pad(rotation / unit_length(dim), (0, -dim % ALIGNED))
    values = torch.empty(len(vectors), rotation.shape[1], dtype=torch.int8)
    for first in range(0, len(vectors), ROWS_AT_A_TIME):
        part = slice(first, first + ROWS_AT_A_TIME)
        values[part] = (vectors[part].float() @ rotation).round_().clamp_(-LARGEST, LARGEST)
    return values


def unit_length(dim: int) -> float:
    """Return the length of one unit of a rounded coordinate."""
    # the coordinates of a rotated unit vector have the standard deviation dim ** -0.5
    length: float = WIDTH / (LARGEST * dim**0.5)
    return length


def write_products(rows: Tensor, columns: Tensor, out: Tensor) -> None:
    """Write the exact products of all pairs of vectors of 8-bit integers.

    Args:
        rows: ``[n, dim]``.
        columns: ``[m, dim]``.
        out: ``[n, m]`` 32-bit integers.
    """
    if _has(LOOP_INSTRUCTIONS) and kernels.uses_numba(rows):
        loops().int8_products(*arrays(rows, columns), out.numpy())
    else:
        torch._int_mm(rows, columns.T, out=out)
