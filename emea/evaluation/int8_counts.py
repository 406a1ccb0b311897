"""Counts of the targets that score better than a link's, by 8-bit products and their bounds."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching import compiled
from emea.matching.int8_vectors import RoundedVectors, has_fast_int8, rounded, write_products
from emea.matching.similarity import Similarity
from emea.runtime.threads import available_threads, index_ranges, one_thread

MIN_PAIRS = 10**8
"""Pairs of links and targets from which rounding the vectors takes less time than it saves."""

ROWS_PER_BLOCK, COLUMNS_PER_BLOCK = 2048, 256
"""Pairs that are compared at a time. The products (2 MB) and the vectors of the columns stay in the
cache."""


def is_quick(similarity: Similarity, num_links: int) -> bool:
    """Return whether bounds are quicker than scores of all pairs."""
    return (
        similarity.uses_compiled_products
        and num_links * similarity.num_target >= MIN_PAIRS
        and has_fast_int8()
    )


@dataclass(frozen=True, eq=False)
class Bounds:
    """Holds the range in which a product of rounded vectors does not decide.

    A product is better than the reference if ``unit * product - column[0] > row[0]``, and worse
    if ``unit * product - column[1] < row[1]``. This follows from the inequality of Cauchy and
    Schwarz: ``|<a, b> - <a', b'>| <= |a - a'| |b| + |a'| |b - b'|``.

    Args:
        unit: Score of one unit of a product.
        rows: ``[2, num_rows]`` bounds of the rows.
        columns: ``[2, num_columns]`` bounds of the columns.
    """

    unit: float
    rows: Tensor
    columns: Tensor

    @classmethod
    def of(
        cls,
        similarity: Similarity,
        sources: Tensor,
        reference: Tensor,
        rows: RoundedVectors,
        columns: RoundedVectors,
    ) -> "Bounds":
        """Return the bounds of some rows and all targets."""
        scale, dim = similarity.scale, similarity.source.shape[1]
        longest = similarity.target.norm(dim=1).max()
        longest_row = similarity.source[sources].norm(dim=1).max() + rows.errors.max()
        # the sums of both products and of the score are rounded
        rounding = 4 * dim * torch.finfo(torch.float32).eps * max(1.0, float(longest * longest_row))
        of_row = scale * (rows.errors * longest + rounding)
        of_column = scale * longest_row * columns.errors
        middle, offset = reference + similarity.source_offset[sources], similarity.target_offset
        return cls(
            scale * rows.step * columns.step,
            torch.stack([middle + of_row, middle - of_row]),
            torch.stack([offset + of_column, offset - of_column]),
        )

    def is_finite(self) -> bool:
        """Return whether all vectors and offsets are finite."""
        return bool(self.rows.isfinite().all() and self.columns.isfinite().all())


def int8_counts(
    similarity: Similarity, sources: Tensor, right: Tensor, num_pooled: int
) -> tuple[Tensor, Tensor] | None:
    """Return the counts of ``all_counts``, or ``None`` if a vector or an offset is not finite.

    Pairs that the 8-bit products do not decide are scored exactly, like the right ones, so that
    ties are exact. The arguments are those of ``all_counts``.
    """
    reference = similarity.of_pairs(sources, right)
    rows, columns = rounded(similarity.source[sources]), rounded(similarity.target)
    bounds = Bounds.of(similarity, sources, reference, rows, columns)
    if not bounds.is_finite():
        return None
    better, equal = torch.zeros(2, 2, len(sources), dtype=torch.int64)
    ranges = (0, num_pooled), (num_pooled, similarity.num_target)
    offset = similarity.source_offset[sources]

    def add(some: slice, vectors: Tensor, others: slice, place: int) -> None:
        counts = better[place, some], equal[place, some]
        products = torch.empty(len(vectors), others.stop - others.start, dtype=torch.int32)
        write_products(rows.values[some], columns.values[others], products)
        limits = bounds.rows[:, some], bounds.columns[:, others]
        pairs = compiled.undecided(products, bounds.unit, *limits, counts[0])
        compiled.compare_pairs(
            compiled.pair_dots(vectors, similarity.target[others], *pairs),
            pairs,
            similarity.scale,
            (offset[some], reference[some]),
            similarity.target_offset[others],
            counts,
        )

    def count(part: tuple[int, int]) -> None:
        torch.set_num_threads(1)  # of this thread
        for some in _slices(*part, ROWS_PER_BLOCK):
            vectors = similarity.source[sources[some]]
            for place, (first, last) in enumerate(ranges):
                for others in _slices(first, last, COLUMNS_PER_BLOCK):
                    add(some, vectors, others, place)

    parts = index_ranges(len(sources), available_threads())
    with one_thread(), ThreadPoolExecutor(len(parts)) as threads:
        list(threads.map(count, parts))
    return better.cumsum(0), equal.cumsum(0)


def _slices(first: int, last: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, last)) for start in range(first, last, size)]
