"""Search that compares all pairs once, with 8-bit vectors, and ranks shortlists exactly."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.errors import ConfigError
from emea.matching.best_keys import GROUP, BestKeys
from emea.matching.int8_vectors import has_fast_int8, rounded, write_products
from emea.matching.shortlists import CandidateLists, Shortlists
from emea.runtime.threads import available_threads, index_ranges, one_thread

ROWS_PER_BLOCK, COLUMNS_PER_BLOCK = 512, 16 * GROUP
"""Pairs that are compared at a time. Their scores (2 MB) stay in the cache."""

MIN_ROWS_PER_THREAD = 256
"""Rows below which another thread does not save time: each has lists for all columns."""


@dataclass(frozen=True)
class OnePassSearch:
    """Compares all pairs of entities once, for both directions, and ranks shortlists exactly.

    The vectors are rotated at random, so that all coordinates have a similar range, and rounded to
    8 bits. The pairs with the best products of each source and of each target entity are scored
    exactly. On processors without instructions for 8-bit integers, the products have single
    precision. CSLS subtracts the mean score of the nearest neighbours of both sides. These means
    and the CSLS ranking use the exact scores of the shortlists.

    The result does not depend on the number of threads. The search runs on the CPU.

    Args:
        shortlist: Number of candidates per entity that are scored exactly. A larger number raises
            recall.
    """

    shortlist: int = 100

    def __call__(self, source: Tensor, target: Tensor) -> Shortlists:
        """Return the shortlists of two sets of unit vectors.

        Raises:
            ConfigError: If the vectors are not on the CPU.
        """
        if source.device.type != "cpu":
            raise ConfigError("search=one_pass runs on the CPU. Set trainer=cpu or search=exact.")
        lengths = min(self.shortlist, len(target)), min(self.shortlist, len(source))
        of_source, of_target = best_pairs(source, target, lengths)
        return Shortlists(
            CandidateLists.of(source, target, of_source),
            CandidateLists.of(target, source, of_target),
        )


def best_pairs(rows: Tensor, columns: Tensor, lengths: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return the columns with the best products of each row, and the rows of each column.

    Args:
        rows: ``[num_rows, dim]`` unit vectors.
        columns: ``[num_columns, dim]`` unit vectors.
        lengths: Number of columns per row, and of rows per column.
    """
    num_rows, num_columns = len(rows), len(columns)
    rows, columns = _compressed(rows, columns)
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
                scores = _ordered(torch.mm(some, others.T, out=scores))
            kept.add(scores, start, first_column, first)


def _ordered(scores: Tensor) -> Tensor:
    """Return 32-bit integers in the same order as single-precision scores, in place."""
    bits = scores.view(torch.int32)
    # the bits of negative numbers are in the opposite order
    return bits.bitwise_xor_((bits >> 31).bitwise_and_(0x7FFFFFFF))


def _compressed(rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Return the vectors of both sides in the type in which they are compared."""
    if not has_fast_int8():
        return rows.float(), columns.float()
    return rounded(rows).values, rounded(columns).values
