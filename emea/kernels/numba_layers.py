"""All reflection layers of an encoder on a CPU, as one differentiable function."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.kernels import numba_attention
from emea.kernels.dropout import kept_bytes, random_bytes
from emea.kernels.numba_attention import EdgeArrays, num_threads, run
from emea.kernels.numba_calls import arrays
from emea.runtime.threads import index_ranges

ACTIVATION_GRADIENTS: dict[Any, Callable[[Tensor, Tensor], Tensor]] = {
    torch.relu: lambda grad, out: torch.ops.aten.threshold_backward(grad, out, 0),
    torch.tanh: torch.ops.aten.tanh_backward,
}
"""Gradients of the activations that the compiled kernels know, given the gradient and the value of
the output."""


class NumbaLayers(torch.autograd.Function):
    """Computes the concatenation of all depths of all channels with dropout.

    The settings are the edges of the joint graph, the activation, and the share of the output to
    drop, as in ``ByteDropout``; it is 0 in evaluation. Then follow the reflectors, w and v as in
    ``LayerParameters``, and the ``[num_entities, dim]`` input of each channel.
    """

    @staticmethod
    def forward(
        ctx: Any,
        settings: tuple[EdgeArrays, Any, float],
        reflectors: Tensor,
        by_neighbour: Tensor,
        by_relation: Tensor,
        *starts: Tensor,
    ) -> Tensor:
        """Return ``[num_entities, num_channels * (depth + 1) * dim]``."""
        graph, activation, dropout = settings
        w = by_neighbour.contiguous()
        v = by_relation.contiguous()
        reflectors = reflectors.contiguous()
        outputs = reflectors.new_empty(len(starts), w.shape[1] + 1, *starts[0].shape)
        for start, out in zip(starts, outputs[:, 0], strict=True):
            out.copy_(activation(start))
        is_relu = activation is torch.relu
        attended = numba_attention.attend(graph, is_relu, outputs, reflectors, w, v)
        ctx.settings = graph, activation
        wide, ctx.num_kept, ctx.random = _concatenated(outputs.flatten(0, 1), dropout)
        ctx.save_for_backward(v, outputs, reflectors, w, *attended)
        return wide

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of all arguments."""
        graph, activation = ctx.settings
        v, *saved = ctx.saved_tensors
        outputs, reflectors, w = saved[:3]
        of_outputs = torch.empty_like(outputs)
        parts = of_outputs.flatten(0, 1)
        active = _of_columns(grads[0].contiguous(), ctx.num_kept, ctx.random, parts)
        of_reflectors, of_w, sums = numba_attention.attend_backward(
            graph, activation is torch.relu, saved, active, of_outputs
        )
        through = ACTIVATION_GRADIENTS[activation]
        of_starts = map(through, of_outputs[:, 0], outputs[:, 0])
        # reflectors @ [w v] of all layers at once
        num_channels, depth, dim = w.shape
        sums = sums.view(-1, len(reflectors))
        of_reflectors.addmm_(sums.t(), torch.stack([w, v], dim=2).view(-1, dim))
        of_kernels = (sums @ reflectors).view(num_channels, depth, 2, dim)
        return (
            None,
            of_reflectors,
            of_w + of_kernels[:, :, 0],
            of_kernels[:, :, 1],
            *of_starts,
        )


def _concatenated(parts: Tensor, dropout: float) -> tuple[Tensor, int, Tensor | None]:
    """Return the concatenated and dropped matrices, and what the backward pass needs for it."""
    num_parts, num_rows, dim = parts.shape
    wide = parts.new_empty(num_rows, num_parts * dim)
    if not dropout:
        wide.view(num_rows, num_parts, dim).copy_(parts.transpose(0, 1))
        return wide, 256, None
    num_kept = kept_bytes(dropout)
    random = random_bytes(wide.numel()).view(wide.shape)
    ranges = index_ranges(num_rows, num_threads(wide.numel()))
    run("dropped_copy", ranges, *arrays(parts), *_dropout(wide, random, num_kept))
    return wide, num_kept, random


def _of_columns(
    grad: Tensor, num_kept: int, random: Tensor | None, parts: Tensor
) -> Tensor:
    """Write the gradient of each matrix, given that of their dropped concatenation.

    The result marks the rows that have a gradient. Late in training these are few, because most
    pairs are outside the margin.
    """
    num_parts, num_rows, dim = parts.shape
    if random is None:
        parts.copy_(grad.view(num_rows, num_parts, dim).transpose(0, 1))
        return (grad != 0).any(1)
    active = torch.empty(num_rows, dtype=torch.bool)
    ranges = index_ranges(num_rows, num_threads(grad.numel()))
    given = _dropout(grad, random, num_kept)
    run("dropped_copy_backward", ranges, *given, *arrays(parts, active))
    return active


def _dropout(wide: Tensor, random: Tensor, num_kept: int) -> tuple[Any, ...]:
    """Return the arguments of the loops that drop elements of a wide matrix by random bytes."""
    return (*arrays(wide, random), np.uint8(num_kept - 1), np.float32(256 / num_kept))
