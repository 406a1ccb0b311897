"""Launchers of the kernels that activate features and concatenate them with dropout.

The mask of the dropout is a hash of an element's position and a random seed. The backward pass
computes it again instead of storing it.
"""

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from emea.encoders.kernels.sparse_kernels import power_of_two

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

    def arguments(self, depth: int, channel: int, shape: tuple[int, ...]) -> dict[str, Any]:
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


def activate(
    columns: Columns,
    values: Tensor,
    features: Tensor,
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
    _kernels()["activate"][_grid(values)](
        values=values.contiguous(),
        features=features,
        by_neighbour=terms if kernel is None else kernel,
        row_terms=terms,
        WITH_TERMS=kernel is not None,
        **columns.arguments(depth, channel, values.shape),
    )


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


def activate_backward(
    columns: Columns, features: Tensor, following: NextGradients | None, out: Tensor, depth: int
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
    _kernels()["activate_backward"][grid](
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


@functools.cache
def _kernels() -> dict[str, Any]:
    # imported on first use, because torch does not always come with Triton
    from emea.encoders.kernels import triton_activation

    return {
        "activate": triton_activation.activate_kernel,
        "activate_backward": triton_activation.activate_backward_kernel,
    }
