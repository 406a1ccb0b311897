"""Triton kernels that activate features and concatenate them with dropout, with their launchers.

The channel is the first dimension: features are ``[channels, rows, DIM]``. They have their own
columns of the ``wide`` rows, which contain all depths of all channels. The numbers of columns are
constants, so that the compiler knows which elements are aligned.

The mask of the dropout is a hash of an element's position and a random seed. The backward pass
computes it again instead of storing it. The module can only be imported if Triton is installed.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from emea.kernels.triton_sparse import SIZES, power_of_two

COPY_TILE = 16
"""Rows copied by one program."""


class Columns(NamedTuple):
    """Holds the wide rows with the depths of all channels, and how features are copied to them.

    Args:
        wide: ``[num_rows, num_channels * num_depths * dim]`` rows; the depths of a channel are
            next to each other.
        seed: ``[1]`` seed of the dropout.
        dropout: Share of the elements to drop.
        num_depths: Number of depths, including the inputs.
        is_relu: Whether the activation is a ReLU; otherwise it is the hyperbolic tangent.
        marks: ``[num_rows]`` bytes: whether a row of a gradient can differ from zero; ``None`` if
            all can.
    """

    wide: Tensor
    seed: Tensor
    dropout: float
    num_depths: int
    is_relu: bool
    marks: Tensor | None = None

    def arguments(
        self, depth: int, channel: int, shape: tuple[int, ...]
    ) -> dict[str, Any]:
        """Return the arguments of a kernel that describe the columns of some features."""
        _, num_rows, dim = shape
        return {
            "wide": self.wide,
            "seeds": self.seed,
            "num_rows": num_rows,
            "NUM_COLUMNS": self.wide.shape[1],
            "FIRST_COLUMN": (channel * self.num_depths + depth) * dim,
            "CHANNEL_COLUMNS": self.num_depths * dim,
            "threshold": round(self.dropout * 2**32),
            "scale": 1 / (1 - self.dropout),
            "IS_RELU": self.is_relu,
            "DIM": dim,
            "TILE": COPY_TILE,
            "WIDTH": power_of_two(dim),
        }


class NextGradients(NamedTuple):
    """Holds the gradients by the next layer.

    Args:
        of_features: ``[num_channels, num_rows, dim]``.
        of_terms: ``[num_channels, num_rows]`` gradient of the products of the features with w.
        reached: ``[num_rows]`` bytes: whether a row has such gradients. For other rows they are
            not written, and count as zero.
        of_kernel: ``[num_channels, dim]`` gradient of w, to which the share of these products is
            added.
    """

    of_features: Tensor
    of_terms: Tensor
    reached: Tensor
    of_kernel: Tensor


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


def activate(
    columns: Columns,
    values: Tensor,
    features: Tensor,
    *,
    depth: int,
    channel: int,
    kernel: Tensor | None,
    terms: Tensor,
) -> None:
    """Write the activated values to the features and, with dropout, to the wide rows.

    Args:
        columns: The wide rows.
        values: ``[num_channels, num_rows, dim]`` values before the activation.
        features: Tensor of the same shape in any precision.
        depth: Depth of the values.
        channel: The first of the channels.
        kernel: ``[num_channels, dim]`` w of the next layer; ``None`` if there is none.
        terms: ``[num_channels, num_rows]`` tensor for the products of the activated values with w.
    """
    activate_kernel[_grid(values)](
        values=values.contiguous(),
        features=features,
        by_neighbour=terms if kernel is None else kernel,
        row_terms=terms,
        WITH_TERMS=kernel is not None,
        **columns.arguments(depth, channel, values.shape),
    )


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
    value = tl.load(features + narrow, mask=mask & given[:, None], other=0.0).to(
        tl.float32
    )
    if WITH_ADDED:
        of_term = tl.load(
            of_terms + channel * num_rows + row, mask=inside & is_reached, other=0.0
        )
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


def activate_backward(
    columns: Columns,
    features: Tensor,
    following: NextGradients | None,
    out: Tensor,
    depth: int,
) -> Tensor:
    """Write the gradient of the values before the activation.

    Args:
        columns: The gradient of the wide rows.
        features: ``[num_channels, num_rows, dim]`` values after the activation.
        following: Gradients by the next layer; ``None`` if there is none.
        out: Tensor of the same shape in any precision. Rows without a gradient may stay unset,
            except at depth 0.
        depth: Depth of the features.

    Returns:
        ``[num_channels, num_rows]`` bytes: whether a row of ``out`` has nonzero elements.
    """
    grid = _grid(features)
    num_channels, num_rows, dim = features.shape
    active = features.new_empty(num_channels, num_rows, dtype=torch.int8)
    shares = columns.wide.new_empty(num_channels, grid[0] if following else 0, dim)
    activate_backward_kernel[grid](
        features=features,
        marks=active if columns.marks is None else columns.marks,
        reached=following.reached if following else active,
        added=following.of_features if following else columns.wide,
        of_terms=following.of_terms if following else columns.wide,
        out=out,
        active=active,
        shares=shares,
        WITH_MARKS=columns.marks is not None,
        WITH_ADDED=following is not None,
        ALL_ROWS=depth == 0,
        **columns.arguments(depth, 0, features.shape),
    )
    if following is not None:
        following.of_kernel.add_(shares.sum(1))
    return active


def _grid(values: Tensor) -> tuple[int, int]:
    num_channels, num_rows, _ = values.shape
    return max(1, -(-num_rows // COPY_TILE)), num_channels
