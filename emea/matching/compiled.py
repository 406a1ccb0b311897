"""Compiled loops on a CPU, which are used if numba is installed."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.runtime.threads import available_threads, in_threads, index_ranges, thread_ranges


def arrays(*tensors: Tensor) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the tensors as arrays that share their memory."""
    return tuple(tensor.detach().contiguous().numpy() for tensor in tensors)


def pair_dots(first: Tensor, second: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the dot product of ``first[row]`` and ``second[column]`` of each pair.

    The rows are not copied. Equal rows have equal products.
    """
    products = torch.empty(len(rows), dtype=first.dtype)
    given = arrays(first, second, rows, columns, products)
    in_threads(_loops().pair_dots, [(*part, *given) for part in thread_ranges(len(rows))])
    return products


PAIRS_PER_PROGRAM, NUMBERS_PER_STEP = 16, 128
"""Pairs that one program of the kernel scores, and numbers of a vector that it reads at a time."""


def triton_pair_dots(first: Tensor, second: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the same products as ``pair_dots`` on a GPU, without copies of the rows.

    All pairs are summed in the same order, however many there are.
    """
    from emea.matching.triton_kernels import pair_dots_kernel  # torch may come without Triton

    products = first.new_empty(len(rows))
    given = [values.to(first.device).contiguous() for values in (first, second, rows, columns)]
    if len(rows):
        pair_dots_kernel[(-(-len(rows) // PAIRS_PER_PROGRAM),)](
            *(*given, products, len(rows)),
            DIM=first.shape[1],
            PAIRS=PAIRS_PER_PROGRAM,
            WIDTH=NUMBERS_PER_STEP,
        )
    return products


def group_order(groups: Tensor, num_groups: int) -> Tensor:
    """Return the places of the entries ordered by group, and in their order within a group."""
    return torch.from_numpy(_loops().grouped(*arrays(groups), num_groups))


def smallest_of_groups(
    values: Tensor, groups: Tensor, num_groups: int, place: int, filler: int
) -> Tensor:
    """Return the value of each group that has this place in ascending order, or the filler."""
    smallest = torch.full((num_groups, place), filler, dtype=values.dtype)
    _loops().keep_smallest(*arrays(values, groups, smallest))
    return smallest[:, -1]


def other_sums(groups: tuple[Tensor, Tensor], terms: Tensor) -> Tensor:
    """Return 1 + the sum of the other terms of its entity for each pair; 1 in other places.

    Args:
        groups: Start of each entity's pairs in the list of pairs, and the places of the pairs in
            the flattened terms.
        terms: ``[num_source, width]``, not negative.
    """
    sums = torch.ones_like(terms)
    given = arrays(*groups), *(values.reshape(-1) for values in arrays(terms, sums))
    parts = thread_ranges(len(groups[0]) - 1)
    in_threads(_loops().other_sums, [(*part, *given) for part in parts])
    return sums


def rank_counts(scores: Tensor, reference: Tensor, num_columns: int) -> tuple[Tensor, Tensor]:
    """Return the number of scores of each row up to the reference, and of those equal to it.

    Args:
        scores: ``[n, m]``.
        reference: ``[n, 1]``.
        num_columns: Number of columns that count, from the first on.
    """
    counts = torch.empty(2, len(scores), dtype=torch.int64)
    given = (*arrays(scores, reference, counts), num_columns)
    parts = index_ranges(len(scores), available_threads())
    in_threads(_loops().rank_counts, [(*part, *given) for part in parts])
    return counts[0], counts[1]


def int8_products(rows: Tensor, columns: Tensor, out: Tensor) -> None:
    """Write the products of all pairs of vectors of 8-bit integers."""
    _loops().int8_products(*arrays(rows, columns), out.numpy())


def keep_best(
    scores: Tensor,
    first: tuple[int, int, int],
    rows: tuple[Tensor, Tensor, Tensor],
    columns: tuple[Tensor, Tensor, Tensor],
) -> None:
    """Add a block of scores to the lists of the best keys of its rows and columns.

    Args:
        scores: ``[num_rows, num_groups, group]`` 32-bit integers.
        first: First row, first group of columns and id of row 0.
        rows: Keys, sizes and least scores of the lists of all rows.
        columns: The same of all columns.
    """
    _loops().keep_best(scores.numpy(), first, arrays(*rows), arrays(*columns))


def _loops() -> Any:
    from emea.matching import compiled_loops  # numba takes half a second to import

    return compiled_loops
