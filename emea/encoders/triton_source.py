"""Triton source of the kernels (imported only where Triton is installed).

The width of a row is a constant of each kernel: only then does the compiler know that rows are
aligned, and reads four numbers at a time.
"""

import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    chunk_rows,
    chunk_starts,
    chunk_ends,
    chunk_alone,
    cols,
    values,
    dense,
    out,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """One program per chunk of a row and WIDTH columns: adds ``values[e] * dense[cols[e]]``."""
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
        weight = tl.load(values + edge, mask=inside, other=0.0)
        where = neighbour[:, None] * DIM + column[None, :]
        mask = inside[:, None] & (column < DIM)[None, :]
        total += tl.sum(weight[:, None] * tl.load(dense + where, mask=mask, other=0.0), axis=0)
    where = out + row * DIM + column
    if tl.load(chunk_alone + chunk) != 0:
        tl.store(where, total, mask=column < DIM)
    else:
        tl.atomic_add(where, total, mask=column < DIM)


@triton.jit
def row_softmax_kernel(starts, logits, out, BLOCK: tl.constexpr):
    """One program per row: softmax over the row's edges."""
    row = tl.program_id(0)
    begin = tl.load(starts + row)
    end = tl.load(starts + row + 1)
    lane = tl.arange(0, BLOCK)
    peak = -float("inf")
    for offset in range(begin, end, BLOCK):
        value = tl.load(logits + offset + lane, mask=offset + lane < end, other=-float("inf"))
        peak = tl.maximum(peak, tl.max(value, axis=0))
    total = 0.0
    for offset in range(begin, end, BLOCK):
        value = tl.load(logits + offset + lane, mask=offset + lane < end, other=-float("inf"))
        total += tl.sum(tl.exp(value - peak), axis=0)
    for offset in range(begin, end, BLOCK):
        inside = offset + lane < end
        value = tl.load(logits + offset + lane, mask=inside, other=-float("inf"))
        tl.store(out + offset + lane, tl.exp(value - peak) / total, mask=inside)


@triton.jit
def row_softmax_backward_kernel(starts, weights, grad, out, BLOCK: tl.constexpr):
    """One program per row: ``w * (g - sum(w * g))``."""
    row = tl.program_id(0)
    begin = tl.load(starts + row)
    end = tl.load(starts + row + 1)
    lane = tl.arange(0, BLOCK)
    total = 0.0
    for offset in range(begin, end, BLOCK):
        inside = offset + lane < end
        weight = tl.load(weights + offset + lane, mask=inside, other=0.0)
        total += tl.sum(weight * tl.load(grad + offset + lane, mask=inside, other=0.0), axis=0)
    for offset in range(begin, end, BLOCK):
        inside = offset + lane < end
        weight = tl.load(weights + offset + lane, mask=inside, other=0.0)
        value = tl.load(grad + offset + lane, mask=inside, other=0.0)
        tl.store(out + offset + lane, weight * (value - total), mask=inside)


@triton.jit
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
    """One program per tile of edges: ``left[rows[e]] . right[cols[e]]``."""
    edge = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = edge < num_edges
    first = tl.load(rows + edge, mask=inside, other=0).to(tl.int64)
    second = tl.load(cols + edge, mask=inside, other=0).to(tl.int64)
    total = tl.zeros([TILE], dtype=tl.float32)
    for offset in range(0, DIM, WIDTH):
        column = offset + tl.arange(0, WIDTH)
        mask = inside[:, None] & (column < DIM)[None, :]
        a = tl.load(left + first[:, None] * DIM + column[None, :], mask=mask, other=0.0)
        b = tl.load(right + second[:, None] * DIM + column[None, :], mask=mask, other=0.0)
        total += tl.sum(a * b, axis=1)
    tl.store(out + edge, total, mask=inside)


@triton.jit
def distances_kernel(
    rows, first, second, out, num_pairs, DIM: tl.constexpr, TILE: tl.constexpr, WIDTH: tl.constexpr
):
    """One program per tile of pairs: Manhattan distance of ``rows[first]`` and ``rows[second]``."""
    pair = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = pair < num_pairs
    a = tl.load(first + pair, mask=inside, other=0)
    b = tl.load(second + pair, mask=inside, other=0)
    total = tl.zeros([TILE], dtype=tl.float32)
    for offset in range(0, DIM, WIDTH):
        column = offset + tl.arange(0, WIDTH)
        mask = inside[:, None] & (column < DIM)[None, :]
        x = tl.load(rows + a[:, None] * DIM + column[None, :], mask=mask, other=0.0)
        y = tl.load(rows + b[:, None] * DIM + column[None, :], mask=mask, other=0.0)
        total += tl.sum(tl.abs(x - y), axis=1)
    tl.store(out + pair, total, mask=inside)


@triton.jit
def distances_backward_kernel(
    rows,
    first,
    second,
    grad,
    out,
    num_pairs,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """One program per tile of pairs: adds ``grad * sign(difference)`` to both rows' gradients."""
    pair = tl.program_id(0) * TILE + tl.arange(0, TILE)
    weight = tl.load(grad + pair, mask=pair < num_pairs, other=0.0)
    active = weight != 0.0
    a = tl.load(first + pair, mask=active, other=0)
    b = tl.load(second + pair, mask=active, other=0)
    for offset in range(0, DIM, WIDTH):
        column = offset + tl.arange(0, WIDTH)
        mask = active[:, None] & (column < DIM)[None, :]
        at_a = a[:, None] * DIM + column[None, :]
        at_b = b[:, None] * DIM + column[None, :]
        x = tl.load(rows + at_a, mask=mask, other=0.0)
        y = tl.load(rows + at_b, mask=mask, other=0.0)
        sign = tl.where(x > y, 1.0, 0.0) - tl.where(x < y, 1.0, 0.0)
        step = weight[:, None] * sign
        tl.atomic_add(out + at_a, step, mask=mask & (step != 0.0))
        tl.atomic_add(out + at_b, -step, mask=mask & (step != 0.0))
