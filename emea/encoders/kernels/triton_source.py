"""Triton source of the kernels (imported only if Triton is installed).

The width of a row is a constant of each kernel. Only then can the compiler assume that rows are
aligned and read four numbers at a time.
"""

import triton
import triton.language as tl

SIZES = ("num_rows", "num_edges", "num_pairs", "num_true", "size")
"""Numbers that depend on the data. Without this list, Triton would compile a kernel again for
multiples of 16, which does not make it faster."""


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
        total += tl.sum(weight[:, None] * tl.load(dense + where, mask=mask, other=0.0), axis=0)
    where = out + row * DIM + column
    if tl.load(chunk_alone + chunk) != 0:
        tl.store(where, total, mask=column < DIM)
    else:
        tl.atomic_add(where, total, mask=(column < DIM) & (total != 0.0))


@triton.jit(do_not_specialize=SIZES)
def short_softmax_kernel(starts, logits, out, num_rows, ROWS: tl.constexpr, LONGEST: tl.constexpr):
    """Compute the softmax of short rows; one program per tile of rows."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    begin = tl.load(starts + row, mask=row < num_rows, other=0)
    end = tl.load(starts + row + 1, mask=row < num_rows, other=0)
    place = begin[:, None] + tl.arange(0, LONGEST)[None, :]
    inside = (place < end[:, None]) & (end - begin <= LONGEST)[:, None]
    value = tl.load(logits + place, mask=inside, other=-1e38)
    weight = tl.where(inside, tl.exp(value - tl.max(value, axis=1)[:, None]), 0.0)
    total = tl.sum(weight, axis=1)[:, None]
    tl.store(out + place, weight / tl.where(total > 0.0, total, 1.0), mask=inside)


@triton.jit
def hub_softmax_kernel(hubs, starts, logits, out, BLOCK: tl.constexpr):
    """Compute the softmax of long rows; one program per row."""
    row = tl.load(hubs + tl.program_id(0))
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
    """Compute ``w * (g - sum(w * g))``; one program per row."""
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
        b = tl.load(right + second[:, None] * DIM + column[None, :], mask=mask, other=0.0)
        total += tl.sum(a * b, axis=1)
    tl.store(out + edge, total, mask=inside)


@triton.jit(do_not_specialize=SIZES)
def distances_kernel(
    rows, first, second, out, num_pairs, DIM: tl.constexpr, TILE: tl.constexpr, WIDTH: tl.constexpr
):
    """Compute the Manhattan distance of two rows for each pair; one program per tile of pairs."""
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


@triton.jit(do_not_specialize=SIZES)
def distances_backward_kernel(
    rows,
    first,
    second,
    grad,
    out,
    marks,
    num_pairs,
    WITH_MARKS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Add ``grad * sign(difference)`` to both rows' gradients; one program per tile of pairs.

    Rows of pairs with a gradient are marked, too.

    Late in training, few pairs have a gradient, so most programs only read the gradients of a tile.
    """
    lane = tl.arange(0, TILE)
    before = tl.program_id(0) * TILE
    active = tl.load(grad + before + lane, mask=before + lane < num_pairs, other=0.0) != 0.0
    bits = as_bits(active, lane)
    for _ in range(tl.sum(active.to(tl.int32), axis=0)):
        pair = before + lowest_bit(bits)
        bits &= bits - 1
        weight = tl.load(grad + pair)
        a = tl.load(first + pair)
        b = tl.load(second + pair)
        if WITH_MARKS:
            tl.store(marks + a, 1)
            tl.store(marks + b, 1)
        a = a * DIM
        b = b * DIM
        for offset in tl.static_range(0, DIM, WIDTH):
            column = offset + tl.arange(0, WIDTH)
            x = tl.load(rows + a + column, mask=column < DIM, other=0.0)
            y = tl.load(rows + b + column, mask=column < DIM, other=0.0)
            step = weight * (tl.where(x > y, 1.0, 0.0) - tl.where(x < y, 1.0, 0.0))
            tl.atomic_add(out + a + column, step, mask=(column < DIM) & (step != 0.0))
            tl.atomic_add(out + b + column, -step, mask=(column < DIM) & (step != 0.0))


@triton.jit(do_not_specialize=SIZES)
def margin_kernel(
    distances,
    picked,
    loss,
    grad,
    num_true,
    size,
    margin,
    WITH_PICKED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add ``max(0, margin + true - false) / size``, and its gradient; one program per block."""
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = pair < 2 * size
    link = pair % size
    if WITH_PICKED:  # noqa: SIM108 - a constant
        place = tl.load(picked + link, mask=inside, other=0)
    else:
        place = link % num_true
    true = tl.load(distances + place, mask=inside, other=0.0)
    value = margin + true - tl.load(distances + num_true + pair, mask=inside, other=0.0)
    active = inside & ~(value <= 0.0)  # NaN is active, so that the loss shows it
    share = 1.0 / size
    tl.store(grad + num_true + pair, tl.where(active, -share, 0.0), mask=inside)
    tl.atomic_add(grad + place, tl.where(active, share, 0.0), mask=active)
    tl.atomic_add(loss, tl.sum(tl.where(active, value, 0.0), axis=0) * share)


@triton.jit  # a multiple of 16 lets it read four numbers at a time
def rmsprop_kernel(parameters, grads, squares, size, rate, smoothing, epsilon, BLOCK: tl.constexpr):
    """Update the mean square and the parameters; one program per block of parameters."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    grad = tl.load(grads + place, mask=inside, other=0.0)
    square = tl.load(squares + place, mask=inside, other=0.0)
    square = smoothing * square + (1.0 - smoothing) * grad * grad
    value = tl.load(parameters + place, mask=inside, other=0.0)
    tl.store(squares + place, square, mask=inside)
    step = rate * grad / (tl.sqrt(square) + epsilon)
    tl.store(parameters + place, value - step, mask=inside)
