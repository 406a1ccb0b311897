"""The pairs with the best products of each row and of each column, by vectors of 8-bit integers.

All pairs are compared once, in blocks. On processors without instructions for 8-bit integers, the
products have single precision.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from emea.kernels.best_keys import GROUP, BestKeys
from emea.kernels.int8_products import has_fast_int8, write_products
from emea.runtime.threads import available_threads, index_ranges, one_thread

ROWS_PER_BLOCK, COLUMNS_PER_BLOCK = 512, 16 * GROUP
"""Pairs that are compared at a time. Their scores (2 MB) stay in the cache."""

MIN_ROWS_PER_THREAD = 256
"""Rows below which another thread does not save time: each has lists for all columns."""

ROWS_AT_A_TIME = 2**14
"""Vectors that are rounded at a time."""

LARGEST = 127
"""Largest 8-bit coordinate."""

WIDTH = 4.5
"""Standard deviations of a coordinate that 8 bits represent; larger coordinates are cut off."""

ALIGNED = 16
"""The number of 8-bit coordinates is a multiple of this, filled up with zeros."""


def best_pairs(
    rows: Tensor, columns: Tensor, lengths: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Return the columns with the best products of each row, and the rows of each column.

    Args:
        rows: ``[num_rows, dim]`` unit vectors.
        columns: ``[num_columns, dim]`` unit vectors.
        lengths: Number of columns per row, and of rows per column.
    """
    num_rows = len(rows)
    num_columns = len(columns)
    compressed = rounded if has_fast_int8() else Tensor.float
    rows = compressed(rows)
    columns = compressed(columns)
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


def _compare(rows: Tensor, columns: Tensor, first: int, kept: BestKeys) -> None:
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
                scores = _in_integer_order_(torch.mm(some, others.T, out=scores))
            kept.add(scores, start, first_column, first)


def _in_integer_order_(scores: Tensor) -> Tensor:
    """Turn floating-point scores, in place, into integers that sort in the same order.

    The bits of positive numbers, read as integers, already do. Those of negative numbers are in the
    opposite order, so all their bits but the sign are flipped.
    """
    integers = scores.view(torch.int32)
    is_negative = integers >> 31  # all bits set, or none
    integers.bitwise_xor_(is_negative.bitwise_and_(0x7FFFFFFF))
    return integers


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
        values[part] = (
            (vectors[part].float() @ rotation).round_().clamp_(-LARGEST, LARGEST)
        )
    return values


def unit_length(dim: int) -> float:
    """Return the length of one unit of a rounded coordinate."""
    # the coordinates of a rotated unit vector have the standard deviation dim ** -0.5
    length: float = WIDTH / (LARGEST * dim**0.5)
    return length
