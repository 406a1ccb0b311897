"""Triton source of rows divided by their lengths (imported only if Triton is installed)."""

import triton
import triton.language as tl

from emea.encoders.kernels.triton_sparse import SIZES


@triton.jit
def places(num_rows, DIM: tl.constexpr, TILE: tl.constexpr, WIDTH: tl.constexpr):
    """Return the rows of a program, the positions of their elements, and which elements exist."""
    row = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    column = tl.arange(0, WIDTH)
    mask = (row < num_rows)[:, None] & (column < DIM)[None, :]
    return row, row[:, None] * DIM + column[None, :], mask


@triton.jit(do_not_specialize=SIZES)
def unit_rows_kernel(
    rows,
    units,
    lengths,
    num_rows,
    least,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Divide rows by their lengths; one program per tile of rows."""
    row, place, mask = places(num_rows, DIM, TILE, WIDTH)
    value = tl.load(rows + place, mask=mask, other=0.0)
    length = tl.sqrt(tl.sum(value * value, axis=1))
    divisor = tl.where(length < least, least, length)  # NaN stays NaN
    tl.store(units + place, value / divisor[:, None], mask=mask)
    tl.store(lengths + row, length, mask=row < num_rows)


@triton.jit(do_not_specialize=SIZES)
def unit_rows_backward_kernel(
    units,
    lengths,
    grad,
    out,
    num_rows,
    least,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute the gradient of the rows; the divisor of a short row is constant."""
    row, place, mask = places(num_rows, DIM, TILE, WIDTH)
    unit = tl.load(units + place, mask=mask, other=0.0)
    given = tl.load(grad + place, mask=mask, other=0.0)
    length = tl.load(lengths + row, mask=row < num_rows, other=1.0)
    along = tl.where(length < least, 0.0, tl.sum(unit * given, axis=1))
    divisor = tl.where(length < least, least, length)
    result = (given - along[:, None] * unit) / divisor[:, None]
    tl.store(out + place, result, mask=mask)
