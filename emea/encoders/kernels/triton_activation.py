"""Triton source of activation and dropout (imported only if Triton is installed).

The channel is the first dimension: features are ``[channels, rows, DIM]``. They have their own
columns of the ``wide`` rows, which contain all depths of all channels. The numbers of columns are
constants, so that the compiler knows which elements are aligned.
"""

import triton
import triton.language as tl

SIZES = ("num_rows",)
"""Numbers that depend on the data. Without this list, Triton would compile a kernel again for
multiples of 16, which does not make it faster."""


@triton.jit
def keep(seed, row, column, num_columns, threshold):
    """Return whether dropout keeps an element, by a hash of its position and the seed."""
    place = row[:, None] * num_columns + column[None, :]
    mixed = (place + seed).to(tl.uint32) ^ ((place + seed) >> 32).to(tl.uint32)
    for _ in tl.static_range(2):
        mixed = (mixed ^ (mixed >> 16)) * 0x7FEB352D
        mixed = (mixed ^ (mixed >> 15)) * 0x846CA68B
        mixed = (mixed ^ (mixed >> 16)) + (seed >> 32).to(tl.uint32)
    return mixed >= threshold


@triton.jit
def places(
    num_rows,
    NUM_COLUMNS: tl.constexpr,
    FIRST_COLUMN: tl.constexpr,
    CHANNEL_COLUMNS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Return the rows and columns of a program's elements, where they are, and which exist.

    Returns:
        Channel; rows; columns; columns of the wide rows; positions in the features and in the wide
        rows; whether the elements exist.
    """
    channel = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    column = tl.arange(0, WIDTH)
    mask = (row < num_rows)[:, None] & (column < DIM)[None, :]
    narrow = (channel * num_rows + row)[:, None] * DIM + column[None, :]
    wide_column = FIRST_COLUMN + channel * CHANNEL_COLUMNS + column
    broad = row[:, None] * NUM_COLUMNS + wide_column[None, :]
    return channel, row, column, wide_column, narrow, broad, mask


@triton.jit(do_not_specialize=SIZES)
def activate_kernel(
    values,
    features,
    wide,
    seeds,
    by_neighbour,
    row_terms,
    num_rows,
    threshold,
    scale,
    NUM_COLUMNS: tl.constexpr,
    FIRST_COLUMN: tl.constexpr,
    CHANNEL_COLUMNS: tl.constexpr,
    IS_RELU: tl.constexpr,
    WITH_TERMS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Store the activated values, and copy them to their columns of the wide rows with dropout.

    Their products with the next layer's w are stored, too.
    """
    channel, row, column, wide_column, narrow, broad, mask = places(
        num_rows, NUM_COLUMNS, FIRST_COLUMN, CHANNEL_COLUMNS, DIM, TILE, WIDTH
    )
    value = tl.load(values + narrow, mask=mask, other=0.0)
    if IS_RELU:
        value = tl.where(value <= 0.0, 0.0, value)  # NaN stays NaN
    else:
        value = 2.0 / (1.0 + tl.exp(-2.0 * value)) - 1.0  # tanh
    tl.store(features + narrow, value, mask=mask)
    if WITH_TERMS:
        w = tl.load(by_neighbour + channel * DIM + column, mask=column < DIM, other=0.0)
        term = tl.sum(value * w[None, :], axis=1)
        tl.store(row_terms + channel * num_rows + row, term, mask=row < num_rows)
    kept = keep(tl.load(seeds), row, wide_column, NUM_COLUMNS, threshold)
    tl.store(wide + broad, tl.where(kept, value * scale, 0.0), mask=mask)


@triton.jit(do_not_specialize=SIZES)
def activate_backward_kernel(
    features,
    marks,
    reached,
    added,
    of_terms,
    wide,
    out,
    active,
    shares,
    seeds,
    num_rows,
    threshold,
    scale,
    NUM_COLUMNS: tl.constexpr,
    FIRST_COLUMN: tl.constexpr,
    CHANNEL_COLUMNS: tl.constexpr,
    IS_RELU: tl.constexpr,
    WITH_MARKS: tl.constexpr,
    WITH_ADDED: tl.constexpr,
    ALL_ROWS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute the gradient before the activation from those of the wide rows and the next layer.

    Only marked rows have a gradient from the wide rows, and only reached rows one from the next
    layer. Other rows need not be stored, except with ALL_ROWS. Rows with a gradient are marked
    active. Each program also stores its part of the gradient of the next layer's w.
    """
    channel, row, column, wide_column, narrow, broad, mask = places(
        num_rows, NUM_COLUMNS, FIRST_COLUMN, CHANNEL_COLUMNS, DIM, TILE, WIDTH
    )
    inside = row < num_rows
    given = inside
    if WITH_MARKS:
        given = tl.load(marks + row, mask=inside, other=0) != 0
    grad = tl.zeros([TILE, WIDTH], dtype=tl.float32)
    if tl.max(given.to(tl.int32), axis=0) != 0:
        kept = keep(tl.load(seeds), row, wide_column, NUM_COLUMNS, threshold)
        loaded = tl.load(wide + broad, mask=mask & given[:, None], other=0.0)
        grad = tl.where(kept, loaded, 0.0) * scale
    if not WITH_MARKS:
        given = tl.max((grad != 0.0).to(tl.int32), axis=1) != 0
    if WITH_ADDED:
        is_reached = tl.load(reached + row, mask=inside, other=0) != 0
        grad += tl.load(added + narrow, mask=mask & is_reached[:, None], other=0.0)
        given |= is_reached
    value = tl.load(features + narrow, mask=mask & given[:, None], other=0.0).to(tl.float32)
    if WITH_ADDED:
        of_term = tl.load(of_terms + channel * num_rows + row, mask=inside & is_reached, other=0.0)
        share = tl.sum(of_term[:, None] * value, axis=0)
        program = channel * tl.num_programs(0) + tl.program_id(0)
        tl.store(shares + program * DIM + column, share, mask=column < DIM)
    if IS_RELU:  # noqa: SIM108 - a constant
        grad = tl.where(value <= 0.0, 0.0, grad)
    else:
        grad = grad * (1.0 - value * value)
    if WITH_MARKS and not ALL_ROWS:
        # later kernels read all channels of a row that is active in one; this does not depend on
        # the channel
        mask = mask & given[:, None]
    tl.store(out + narrow, grad, mask=mask)
    is_active = tl.max((grad != 0.0).to(tl.int32), axis=1)
    tl.store(active + channel * num_rows + row, is_active.to(tl.int8), mask=inside)
