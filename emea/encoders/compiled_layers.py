"""All reflection layers of an encoder on a CPU, as one differentiable function."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from emea.encoders.kernels import cpu_kernels
from emea.encoders.kernels.cpu_kernels import Attended
from emea.encoders.kernels.dropout import kept_bytes, random_bytes
from emea.encoders.kernels.sparse_pattern import SparsePattern

ACTIVATION_GRADIENTS: dict[Any, Callable[[Tensor, Tensor], Tensor]] = {
    torch.relu: lambda grad, out: torch.ops.aten.threshold_backward(grad, out, 0),
    torch.tanh: torch.ops.aten.tanh_backward,
}
"""Gradients of the activations, computed from the gradient and the value of the output."""


def usable(values: Tensor, activation: Any) -> bool:
    """Return whether the function supports this precision, device and activation."""
    return activation in ACTIVATION_GRADIENTS and cpu_kernels.usable(values)


def compiled_layers(
    edges: SparsePattern,
    sets: Tensor,
    activation: Any,
    dropout: float,
    starts: Sequence[Tensor],
    reflectors: Tensor,
    by_neighbour: Tensor,
    by_relation: Tensor,
) -> Tensor:
    """Return the concatenation of all depths of all channels with dropout.

    Args:
        edges: The edges of the joint graph.
        sets: Relation set of each edge.
        activation: Function that is applied to the inputs and after each layer.
        dropout: Share of the output to drop, as in ``ByteDropout``; 0 in evaluation.
        starts: ``[num_entities, dim]`` input of each channel.
        reflectors: ``[num_sets, dim]`` unit vectors of the relation sets.
        by_neighbour: ``[num_channels, depth, dim]`` w of each channel and layer.
        by_relation: ``[num_channels, depth, dim]`` v of each channel and layer.
    """
    settings = (edges, sets, activation, dropout)
    given = (reflectors, by_neighbour, by_relation, *starts)
    return cast(Tensor, _CompiledLayers.apply(settings, *given))  # type: ignore[no-untyped-call]


class _CompiledLayers(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        settings: tuple[SparsePattern, Tensor, Any, float],
        reflectors: Tensor,
        by_neighbour: Tensor,
        by_relation: Tensor,
        *starts: Tensor,
    ) -> Tensor:
        edges, sets, activation, dropout = settings
        w, v = by_neighbour.contiguous(), by_relation.contiguous()
        reflectors = reflectors.contiguous()
        outputs, attended = [], []
        for channel, start in enumerate(starts):
            outputs.append(activation(start).contiguous())
            for layer in zip(w[channel], v[channel], strict=True):
                given = (edges, sets, outputs[-1], reflectors, *layer)
                attended.append(cpu_kernels.attend(*given, is_relu=activation is torch.relu))
                outputs.append(attended[-1].activated)
        ctx.settings = (edges, sets, activation)
        wide, ctx.num_kept, ctx.random = _concatenated(outputs, dropout)
        ctx.num_outputs = len(outputs)
        flat = [tensor for layer in attended for tensor in layer[1:]]
        ctx.save_for_backward(reflectors, w, v, *outputs, *flat)
        return wide

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        edges, sets, activation = ctx.settings
        reflectors, w, v, *saved = ctx.saved_tensors
        outputs, flat = saved[: ctx.num_outputs], saved[ctx.num_outputs :]
        of_outputs, last_active = _of_columns(
            grads[0].contiguous(), outputs, ctx.num_kept, ctx.random
        )
        through = ACTIVATION_GRADIENTS[activation]
        num_channels, depth, dim = w.shape
        of_parts = reflectors.new_zeros(cpu_kernels.num_parts(edges), *reflectors.shape)
        of_w = torch.empty_like(w)
        sums = w.new_empty(num_channels, depth, 2, len(reflectors))
        of_starts = []
        for channel in range(num_channels):
            first = channel * (depth + 1)
            active = last_active.clone()
            for layer in reversed(range(depth)):
                here, place = first + layer, 3 * (channel * depth + layer)
                of_w[channel, layer], sums[channel, layer] = cpu_kernels.attend_backward(
                    edges,
                    sets,
                    outputs[here],
                    reflectors,
                    w[channel, layer],
                    Attended(outputs[here + 1], *flat[place : place + 3]),
                    activation is torch.relu,
                    active,
                    of_outputs[here + 1],
                    of_outputs[here],
                    of_parts,
                )
            of_starts.append(through(of_outputs[first], outputs[first]))
        # reflectors @ [w v] of all layers at once
        sums = sums.view(-1, len(reflectors))
        kernels = torch.stack([w, v], dim=2).view(-1, dim)
        of_reflectors = of_parts.sum(0).addmm_(sums.t(), kernels)
        of_kernels = (sums @ reflectors).view(num_channels, depth, 2, dim)
        return None, of_reflectors, of_w + of_kernels[:, :, 0], of_kernels[:, :, 1], *of_starts


def _concatenated(outputs: list[Tensor], dropout: float) -> tuple[Tensor, int, Tensor | None]:
    """Return the concatenated and dropped outputs, and what the backward pass needs for it."""
    if not dropout:
        return torch.cat(outputs, dim=1), 256, None
    wide = outputs[0].new_empty(len(outputs[0]), sum(part.shape[1] for part in outputs))
    num_kept, random = kept_bytes(dropout), random_bytes(wide.numel()).view(wide.shape)
    cpu_kernels.dropped_copy(outputs, wide, random, num_kept)
    return wide, num_kept, random


def _of_columns(
    grad: Tensor, outputs: list[Tensor], num_kept: int, random: Tensor | None
) -> tuple[list[Tensor], Tensor]:
    """Return the gradient of each output, given that of their dropped concatenation.

    The second result marks the rows that have a gradient. Late in training these are few, because
    most pairs are outside the margin.
    """
    if random is None:
        # copies, because the layers overwrite them
        columns = grad.chunk(len(outputs), dim=1)
        parts = [part.clone(memory_format=torch.contiguous_format) for part in columns]
        return parts, (grad != 0).any(1)
    parts = [torch.empty_like(out) for out in outputs]
    active = torch.empty(len(grad), dtype=torch.bool)
    cpu_kernels.dropped_copy_backward(grad, random, num_kept, parts, active)
    return parts, active
