"""Dot products of single pairs of rows, without copies of the rows where a compiled form runs."""

import torch
from torch import Tensor

from emea.kernels import choice
from emea.kernels.numba_calls import arrays, score_loops
from emea.runtime.block_memory import block_budget, in_smaller_blocks
from emea.runtime.threads import in_ranges

BLOCK_BYTES = {"cpu": 2**26, "cuda": 2**28}
"""Memory of the rows that torch gathers at a time, per type of device."""


@in_smaller_blocks
def torch_pair_dots(
    first: Tensor, second: Tensor, rows: Tensor, columns: Tensor
) -> Tensor:
    """Return the dot product of ``first[row]`` and ``second[column]`` of each pair.

    A sum of products, unlike a matrix product, gives equal vectors equal results.
    """
    dots = first.new_empty(len(rows))
    # each pair gathers two rows, so work in blocks of bounded memory
    bytes_per_pair = second.element_size() * max(1, 2 * first.shape[1])
    pairs_per_block = max(1, block_budget(BLOCK_BYTES, second.device) // bytes_per_pair)
    for start in range(0, len(rows), pairs_per_block):
        part = slice(start, start + pairs_per_block)
        dots[part] = (first[rows[part]] * second[columns[part]]).sum(1)
    return dots


def pair_dots(first: Tensor, second: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the dot product of ``first[row]`` and ``second[column]`` of each pair.

    Equal vectors have equal products, so that ties stay ties. How many pairs there are does not
    change the form, because the forms round in different ways.
    """
    if choice.uses_triton(first):
        from emea.kernels import triton_scores  # torch may come without Triton

        return triton_scores.pair_dots(first, second, rows, columns)
    num_operations = first.numel() + second.numel()
    if first.dtype == torch.float32 and choice.uses_numba(first, num_operations):
        return numba_pair_dots(first, second, rows, columns)
    return torch_pair_dots(first, second, rows, columns)


def pair_dots_of_any_number(
    first: Tensor, second: Tensor, rows: Tensor, columns: Tensor
) -> Tensor:
    """Return the same products on a CPU, compiled also if the vectors are few."""
    if first.dtype == torch.float32 and choice.uses_numba(first):
        return numba_pair_dots(first, second, rows, columns)
    return torch_pair_dots(first, second, rows, columns)


def numba_pair_dots(
    first: Tensor, second: Tensor, rows: Tensor, columns: Tensor
) -> Tensor:
    """Return the same products by a compiled loop, which does not copy the rows."""
    products = torch.empty(len(rows), dtype=first.dtype)
    given = arrays(first, second, rows, columns, products)
    in_ranges(score_loops().pair_dots, len(rows), *given)
    return products
