"""Triton kernels of row distances, of the margin loss and of RMSprop, with their launchers.

The module can only be imported if Triton is installed.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from emea.kernels.triton_sparse import SIZES, as_bits, lowest_bit, tile_width

PAIRS_PER_TILE = 8
"""Pairs of rows compared side by side."""

PAIRS_PER_GRADIENT = 32
"""Pairs of rows whose gradients one program adds up; at most 64, as they are marked by bits."""

MARGIN_BLOCK = 1024
"""Pairs of which one program adds up the loss."""

RMSPROP_BLOCK = 1024
"""Parameters updated by one program."""


@triton.jit(do_not_specialize=SIZES)
def distances_kernel(
    rows,
    first,
    second,
    out,
    num_pairs,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
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


def pair_distances(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return the Manhattan distances of pairs of rows."""
    rows = rows.contiguous()
    out = rows.new_empty(len(first))
    _launch_on_pairs(distances_kernel, PAIRS_PER_TILE, rows, first, second, out)
    return out


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
    active = (
        tl.load(grad + before + lane, mask=before + lane < num_pairs, other=0.0) != 0.0
    )
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


def pair_distances_backward(
    rows: Tensor,
    first: Tensor,
    second: Tensor,
    grad: Tensor,
    marks: Tensor | None = None,
) -> Tensor:
    """Return the gradient of the distances; atomic sums make its last bits vary between runs.

    Args:
        rows: The rows.
        first: First row of each pair.
        second: Second row of each pair.
        grad: Gradient of each distance.
        marks: ``[num_rows]`` bytes; those of rows with a gradient become 1.
    """
    rows = rows.contiguous()
    out = torch.zeros_like(rows)
    _launch_on_pairs(
        distances_backward_kernel,
        PAIRS_PER_GRADIENT,
        rows,
        first,
        second,
        grad,
        out,
        out if marks is None else marks,
        WITH_MARKS=marks is not None,
    )
    return out


def _launch_on_pairs(
    kernel: Any,
    tile: int,
    rows: Tensor,
    first: Tensor,
    second: Tensor,
    *rest: Tensor,
    **constants: int,
) -> None:
    num_pairs, dim = len(first), rows.shape[1]
    grid = (-(-num_pairs // tile),)
    width = tile_width(dim)
    constants |= {"DIM": dim, "TILE": tile, "WIDTH": width}
    kernel[grid](rows, first, second, *rest, num_pairs, **constants)


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


def margin_loss(
    distances: Tensor, picked: Tensor | None, num_true: int, margin: float
) -> tuple[Tensor, Tensor]:
    """Return the loss of ``pair_distance.margin_loss`` and the gradient of the distances."""
    size = (len(distances) - num_true) // 2
    results = distances.new_empty(1 + len(distances))
    results[: 1 + num_true].zero_()
    loss, grad = results[0], results[1:]
    margin_kernel[(-(-2 * size // MARGIN_BLOCK),)](
        distances.contiguous(),
        distances if picked is None else picked,
        loss,
        grad,
        num_true,
        size,
        margin,
        WITH_PICKED=picked is not None,
        BLOCK=MARGIN_BLOCK,
    )
    return loss, grad


@triton.jit  # a multiple of 16 lets it read four numbers at a time
def rmsprop_kernel(
    parameters, grads, squares, size, rate, smoothing, epsilon, BLOCK: tl.constexpr
):
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


def rmsprop(
    parameter: Tensor,
    grad: Tensor,
    square: Tensor,
    *,
    rate: float,
    smoothing: float,
    epsilon: float,
) -> None:
    """Run one step of RMSprop in place."""
    size = parameter.numel()
    grid = (max(1, -(-size // RMSPROP_BLOCK)),)
    rmsprop_kernel[grid](
        parameter, grad, square, size, rate, smoothing, epsilon, BLOCK=RMSPROP_BLOCK
    )
