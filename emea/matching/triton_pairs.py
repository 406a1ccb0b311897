"""Triton source of the kernel that scores single pairs (imported only if Triton is installed)."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["num_pairs"])  # one program for all numbers of pairs
def pair_dots_kernel(
    first,
    second,
    rows,
    columns,
    products,
    num_pairs,
    DIM: tl.constexpr,
    PAIRS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute the dot products of some pairs of rows.

    All pairs are summed in the same order, so that equal rows have equal products.
    """
    pair = tl.program_id(0).to(tl.int64) * PAIRS + tl.arange(0, PAIRS)
    is_pair = pair < num_pairs
    row = tl.load(rows + pair, mask=is_pair, other=0)
    column = tl.load(columns + pair, mask=is_pair, other=0)
    total = tl.zeros((PAIRS, WIDTH), dtype=tl.float32)
    for start in range(0, DIM, WIDTH):
        place = start + tl.arange(0, WIDTH)
        inside = is_pair[:, None] & (place < DIM)[None, :]
        left = tl.load(first + row[:, None] * DIM + place[None, :], mask=inside, other=0.0)
        right = tl.load(second + column[:, None] * DIM + place[None, :], mask=inside, other=0.0)
        total += left * right
    tl.store(products + pair, tl.sum(total, axis=1), mask=is_pair)
