"""Search that compares all pairs once, with 8-bit vectors, and ranks shortlists exactly."""

import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from emea.errors import ConfigError
from emea.matching.best_keys import GROUP, BestKeys
from emea.matching.shortlists import CandidateLists, Shortlists
from emea.matching.threads import available_threads, index_ranges, one_thread

ROWS_PER_BLOCK, COLUMNS_PER_BLOCK = 512, 16 * GROUP
"""Pairs that are compared at a time. Their scores (2 MB) stay in the cache."""

MIN_ROWS_PER_THREAD = 256
"""Rows below which another thread does not save time: each has lists for all columns."""

LARGEST = 127
"""Largest 8-bit coordinate."""

WIDTH = 4.5
"""Standard deviations of a coordinate that 8 bits represent; larger coordinates are cut off."""

INT8_INSTRUCTIONS = ("avx512_vnni", "avx_vnni", "amx_int8")
"""Processor features that make products of 8-bit integers exact and fast in torch."""


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
            others = columns[first_column : first_column + COLUMNS_PER_BLOCK].T
            scores = block[: len(some) * others.shape[1]].view(len(some), -1)
            if is_int8:
                torch._int_mm(some, others, out=scores)
            else:
                scores = _ordered(torch.mm(some, others, out=scores))
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
    dim = rows.shape[1]
    generator = torch.Generator().manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(dim, dim, generator=generator)).Q
    # the coordinates of a rotated unit vector have the standard deviation dim ** -0.5
    rotation *= LARGEST * dim**0.5 / WIDTH
    first, second = (
        (side.float() @ rotation).round_().clamp_(-LARGEST, LARGEST).to(torch.int8)
        for side in (rows, columns)
    )
    return first, second


@functools.cache
def has_fast_int8() -> bool:
    """Return whether torch multiplies matrices of 8-bit integers exactly and fast."""
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return hasattr(torch, "_int_mm") and any(map(capabilities.get, INT8_INSTRUCTIONS))
