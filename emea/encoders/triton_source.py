"""Triton source of the sparse products (imported only where Triton is installed)."""

import triton
import triton.language as tl


@triton.jit
def matmul_kernel(starts, cols, values, dense, out, dim, TILE: tl.constexpr, WIDTH: tl.constexpr):
    """One program per row: sums ``values[e] * dense[cols[e]]`` over the row's edges."""
    row = tl.program_id(0)
    begin = tl.load(starts + row)
    end = tl.load(starts + row + 1)
    lane = tl.arange(0, TILE)
    column = tl.arange(0, WIDTH)
    total = tl.zeros([WIDTH], dtype=tl.float32)
    for offset in range(begin, end, TILE):
        edge = offset + lane
        inside = edge < end
        neighbour = tl.load(cols + edge, mask=inside, other=0).to(tl.int64)
        weight = tl.load(values + edge, mask=inside, other=0.0)
        where = neighbour[:, None] * dim + column[None, :]
        mask = inside[:, None] & (column < dim)[None, :]
        total += tl.sum(weight[:, None] * tl.load(dense + where, mask=mask, other=0.0), axis=0)
    tl.store(out + row.to(tl.int64) * dim + column, total, mask=column < dim)


@triton.jit
def sampled_dots_kernel(
    rows, cols, left, right, out, num_edges, dim, TILE: tl.constexpr, WIDTH: tl.constexpr
):
    """One program per tile of edges: ``left[rows[e]] . right[cols[e]]``."""
    edge = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.arange(0, WIDTH)
    inside = edge < num_edges
    first = tl.load(rows + edge, mask=inside, other=0).to(tl.int64)
    second = tl.load(cols + edge, mask=inside, other=0).to(tl.int64)
    mask = inside[:, None] & (column < dim)[None, :]
    a = tl.load(left + first[:, None] * dim + column[None, :], mask=mask, other=0.0)
    b = tl.load(right + second[:, None] * dim + column[None, :], mask=mask, other=0.0)
    tl.store(out + edge, tl.sum(a * b, axis=1), mask=inside)


@triton.jit
def distances_kernel(
    rows, first, second, out, num_pairs, dim, TILE: tl.constexpr, WIDTH: tl.constexpr
):
    """One program per tile of pairs: Manhattan distance of ``rows[first]`` and ``rows[second]``."""
    pair = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = pair < num_pairs
    a = tl.load(first + pair, mask=inside, other=0)
    b = tl.load(second + pair, mask=inside, other=0)
    total = tl.zeros([TILE], dtype=tl.float32)
    for offset in range(0, dim, WIDTH):
        column = offset + tl.arange(0, WIDTH)
        mask = inside[:, None] & (column < dim)[None, :]
        x = tl.load(rows + a[:, None] * dim + column[None, :], mask=mask, other=0.0)
        y = tl.load(rows + b[:, None] * dim + column[None, :], mask=mask, other=0.0)
        total += tl.sum(tl.abs(x - y), axis=1)
    tl.store(out + pair, total, mask=inside)


@triton.jit
def distances_backward_kernel(
    rows, first, second, grad, out, num_pairs, dim, TILE: tl.constexpr, WIDTH: tl.constexpr
):
    """One program per tile of pairs: adds ``grad * sign(difference)`` to both rows' gradients."""
    pair = tl.program_id(0) * TILE + tl.arange(0, TILE)
    weight = tl.load(grad + pair, mask=pair < num_pairs, other=0.0)
    active = weight != 0.0
    a = tl.load(first + pair, mask=active, other=0)
    b = tl.load(second + pair, mask=active, other=0)
    for offset in range(0, dim, WIDTH):
        column = offset + tl.arange(0, WIDTH)
        mask = active[:, None] & (column < dim)[None, :]
        at_a = a[:, None] * dim + column[None, :]
        at_b = b[:, None] * dim + column[None, :]
        x = tl.load(rows + at_a, mask=mask, other=0.0)
        y = tl.load(rows + at_b, mask=mask, other=0.0)
        sign = tl.where(x > y, 1.0, 0.0) - tl.where(x < y, 1.0, 0.0)
        step = weight[:, None] * sign
        tl.atomic_add(out + at_a, step, mask=mask & (step != 0.0))
        tl.atomic_add(out + at_b, -step, mask=mask & (step != 0.0))
