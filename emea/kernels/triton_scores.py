"""Triton kernels that score pairs of rows and scan scores, with their launchers.

The module can only be imported if Triton is installed.
"""

import triton
import triton.language as tl
from torch import Tensor

PAIRS_PER_PROGRAM, NUMBERS_PER_STEP = 16, 128
"""Pairs that one program scores, and numbers of a vector that it reads at a time."""

TILE = 2048
"""Scores that one program of the scan reads; a multiple of the group's length."""


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
        left = tl.load(
            first + row[:, None] * DIM + place[None, :], mask=inside, other=0.0
        )
        right = tl.load(
            second + column[:, None] * DIM + place[None, :], mask=inside, other=0.0
        )
        total += left * right
    tl.store(products + pair, tl.sum(total, axis=1), mask=is_pair)


def pair_dots(first: Tensor, second: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the dot products of pairs of rows, without copies of the rows.

    All pairs are summed in the same order, however many there are.
    """
    products = first.new_empty(len(rows))
    given = [
        values.to(first.device).contiguous()
        for values in (first, second, rows, columns)
    ]
    if len(rows):
        pair_dots_kernel[(-(-len(rows) // PAIRS_PER_PROGRAM),)](
            *given,
            products,
            len(rows),
            DIM=first.shape[1],
            PAIRS=PAIRS_PER_PROGRAM,
            WIDTH=NUMBERS_PER_STEP,
        )
    return products


@triton.jit
def scan_kernel(
    dots,
    offsets,
    maxima,
    peaks,
    sums,
    num_columns,
    row_length,
    num_groups,
    num_tiles,
    scale,
    sharpness,
    GROUP: tl.constexpr,
    TILE: tl.constexpr,
    WITH_MASS: tl.constexpr,
):
    """Compute the largest score of each group, and the softmax's terms; one program per tile.

    A score is ``scale * dot - offset``. ``peaks`` and ``sums`` contain the largest score of each
    tile and ``sum(exp(sharpness * (score - peak)))``. Rows have ``row_length`` numbers, and
    the first ``num_columns`` of them count.
    """
    row = tl.program_id(0).to(tl.int64)
    tile = tl.program_id(1)
    column = tile * TILE + tl.arange(0, TILE)
    inside = column < num_columns
    dot = tl.load(dots + row * row_length + column, mask=inside, other=0.0)
    score = scale * dot - tl.load(offsets + column, mask=inside, other=0.0)
    score = tl.where(inside, score, -float("inf"))
    best = tl.max(tl.reshape(score, (TILE // GROUP, GROUP)), axis=1)
    group = tile * (TILE // GROUP) + tl.arange(0, TILE // GROUP)
    tl.store(maxima + row * num_groups + group, best, mask=group < num_groups)
    if WITH_MASS:
        peak = tl.max(best, axis=0)
        total = tl.sum(
            tl.where(inside, tl.exp(sharpness * (score - peak)), 0.0), axis=0
        )
        tl.store(peaks + row * num_tiles + tile, peak)
        tl.store(sums + row * num_tiles + tile, total)


def scan(
    dots: Tensor,
    offsets: Tensor,
    scale: float,
    sharpness: float | None,
    group: int,
) -> tuple[Tensor, Tensor]:
    """Return the largest score of each group of columns, and the softmax's denominator.

    Args:
        dots: As in ``column_scan.scan``, like the next three arguments.
        offsets: Numbers that are subtracted.
        scale: Factor of the dot products.
        sharpness: Sharpness of the softmax.
        group: Number of columns of a group.
    """
    num_rows = len(dots)
    num_columns = len(offsets)
    num_groups = -(-num_columns // group)
    num_tiles = -(-num_columns // TILE)
    maxima = dots.new_empty(num_rows, num_groups)
    # each tile has its own largest score and sum; torch combines them
    peaks, sums = dots.new_zeros(2, num_rows, num_tiles)
    scan_kernel[(num_rows, num_tiles)](
        dots,
        offsets,
        maxima,
        peaks,
        sums,
        num_columns,
        dots.stride(0),
        num_groups,
        num_tiles,
        scale,
        sharpness or 0.0,
        GROUP=group,
        TILE=TILE,
        WITH_MASS=sharpness is not None,
    )
    if sharpness is None:
        return maxima, dots.new_zeros(num_rows)
    return maxima, (sharpness * peaks + sums.log()).logsumexp(1)
