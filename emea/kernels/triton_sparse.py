"""Triton kernels of sparse products and of the softmax along rows, with their launchers.

cuSPARSE copies the pattern on every sampled product and cannot share it between calls. These
kernels read each edge's data once and write only the result. The width of a row is a constant of
each kernel. Only then can the compiler assume that rows are aligned and read four numbers at a
time. The module can only be imported if Triton is installed.
"""

import triton
import triton.language as tl
from torch import Tensor

from emea.kernels.edge_orders import RowChunks

EDGES_PER_TILE = 8
"""Edges read side by side by one program."""


MATMUL_WARPS = 1
DOTS_WARPS = 4
DOTS_PER_TILE = 16
"""Dot products taken side by side by one program."""


MAX_WIDTH = 128
"""Columns one program holds at a time; a wider tile does not fit into registers."""


SIZES = ("num_rows", "num_edges", "num_pairs", "num_true", "size")
"""Numbers that depend on the data. Without this list, Triton would compile a kernel again for
multiples of 16, which does not make it faster."""


def power_of_two(size: int) -> int:
    """Return the least power of two that is not smaller than ``size``."""
    return 1 << max(0, size - 1).bit_length()


def tile_width(dim: int) -> int:
    """Return the number of columns that one program holds at a time."""
    return min(MAX_WIDTH, power_of_two(dim))


@triton.jit
def as_bits(chosen, lane):
    """Return numbers with one bit for each chosen lane of the last axis, at most 64 lanes."""
    bit = tl.full(lane.shape, 1, dtype=tl.int64) << lane
    return tl.sum(tl.where(chosen, bit, 0), axis=len(chosen.shape) - 1)


@triton.jit
def lowest_bit(bits):
    """Return the position of the lowest bit; that of 0 is not defined."""
    lowest = (bits & -bits).to(tl.float32)  # a power of two, whose exponent is exact
    return ((lowest.to(tl.int32, bitcast=True) >> 23) & 0xFF) - 127


@triton.jit(do_not_specialize=("marks",))  # one program for aligned and other marks
def matmul_kernel(
    chunk_rows,
    chunk_starts,
    chunk_ends,
    chunk_alone,
    cols,
    values,
    dense,
    marks,
    out,
    WITH_MARKS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Add ``values[e] * dense[cols[e]]``; one program per chunk of a row and WIDTH columns.

    Dense rows that are not marked are zero.
    """
    chunk = tl.program_id(0)
    row = tl.load(chunk_rows + chunk).to(tl.int64)
    begin = tl.load(chunk_starts + chunk)
    end = tl.load(chunk_ends + chunk)
    lane = tl.arange(0, TILE)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    total = tl.zeros([WIDTH], dtype=tl.float32)
    for offset in range(begin, end, TILE):
        edge = offset + lane
        inside = edge < end
        neighbour = tl.load(cols + edge, mask=inside, other=0).to(tl.int64)
        if WITH_MARKS:
            inside = inside & (tl.load(marks + neighbour, mask=inside, other=0) != 0)
        weight = tl.load(values + edge, mask=inside, other=0.0)
        where = neighbour[:, None] * DIM + column[None, :]
        mask = inside[:, None] & (column < DIM)[None, :]
        total += tl.sum(
            weight[:, None] * tl.load(dense + where, mask=mask, other=0.0), axis=0
        )
    where = out + row * DIM + column
    if tl.load(chunk_alone + chunk) != 0:
        tl.store(where, total, mask=column < DIM)
    else:
        tl.atomic_add(where, total, mask=(column < DIM) & (total != 0.0))


def matmul(
    chunks: RowChunks,
    num_rows: int,
    cols: Tensor,
    values: Tensor,
    dense: Tensor,
    *,
    marks: Tensor | None = None,
) -> Tensor:
    """Multiply a CSR matrix by a dense matrix; rows of several chunks are summed atomically.

    Args:
        chunks: Chunks of the rows.
        num_rows: Number of rows.
        cols: Column of each nonzero.
        values: Value of each nonzero.
        dense: The dense matrix.
        marks: Bytes: whether a row of the dense matrix can differ from zero; ``None`` if all can.
    """
    dense = dense.contiguous()
    dim = dense.shape[1]
    out = chunks.zeroed(dense.new_empty(num_rows, dim))
    width = tile_width(dim)
    if len(chunks.rows):
        matmul_kernel[(len(chunks.rows), -(-dim // width))](
            *chunks[:-1],
            cols,
            values.contiguous(),
            dense,
            cols if marks is None else marks,
            out,
            WITH_MARKS=marks is not None,
            DIM=dim,
            TILE=EDGES_PER_TILE,
            WIDTH=width,
            num_warps=MATMUL_WARPS,
        )
    return out


@triton.jit(do_not_specialize=SIZES)
def sampled_dots_kernel(
    rows,
    cols,
    left,
    right,
    out,
    num_edges,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute ``left[rows[e]] . right[cols[e]]``; one program per tile of edges."""
    edge = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = edge < num_edges
    first = tl.load(rows + edge, mask=inside, other=0).to(tl.int64)
    second = tl.load(cols + edge, mask=inside, other=0).to(tl.int64)
    total = tl.zeros([TILE], dtype=tl.float32)
    for offset in range(0, DIM, WIDTH):
        column = offset + tl.arange(0, WIDTH)
        mask = inside[:, None] & (column < DIM)[None, :]
        a = tl.load(left + first[:, None] * DIM + column[None, :], mask=mask, other=0.0)
        b = tl.load(
            right + second[:, None] * DIM + column[None, :], mask=mask, other=0.0
        )
        total += tl.sum(a * b, axis=1)
    tl.store(out + edge, total, mask=inside)


def sampled_dots(rows: Tensor, cols: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return the dot products of the row pairs in the pattern."""
    left, right = left.contiguous(), right.contiguous()
    num_edges, dim = len(rows), left.shape[1]
    out = left.new_empty(num_edges)
    grid = ((num_edges + DOTS_PER_TILE - 1) // DOTS_PER_TILE,)
    width = tile_width(dim)
    sampled_dots_kernel[grid](
        rows,
        cols,
        left,
        right,
        out,
        num_edges,
        DIM=dim,
        TILE=DOTS_PER_TILE,
        WIDTH=width,
        num_warps=DOTS_WARPS,
    )
    return out
