"""All reflection layers of an encoder on CUDA, as one differentiable function."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from emea.encoders.kernels import activation_kernels, reflection_kernels
from emea.encoders.kernels.activation_kernels import Columns
from emea.encoders.kernels.sparse_pattern import SparsePattern

SINGLE = (torch.float32, torch.float32)
HALF = (torch.float16, torch.bfloat16)
"""Types in which the edges read features and gradients; gradients are too small for ``float16``.

Half precision halves the memory traffic, which limits the speed. All sums have single precision.
"""

ACTIVATIONS: tuple[Any, ...] = (torch.relu, torch.tanh)
"""Activations that the kernels know."""


class _Precision:
    """Holds the types in training, once per process."""

    types = SINGLE


def read_halves(on: bool) -> None:
    """Let the edges read features and gradients in half precision in training, or not."""
    _Precision.types = HALF if on else SINGLE


class LayerSettings(NamedTuple):
    """Holds the edges of the joint graph, the activation, the dropout, and the types to store."""

    edges: SparsePattern
    edge_sets: SparsePattern
    is_relu: bool
    dropout: float
    feature_type: torch.dtype
    gradient_type: torch.dtype


def usable(values: Tensor, num_channels: int, activation: Any) -> bool:
    """Return whether the kernels support this precision, device, width and activation."""
    return activation in ACTIVATIONS and reflection_kernels.usable(values, num_channels)


def fused_layers(
    edges: SparsePattern,
    edge_sets: SparsePattern,
    activation: Any,
    dropout: float,
    training: bool,
    starts: Sequence[Tensor],
    reflectors: Tensor,
    by_neighbour: Tensor,
    by_relation: Tensor,
) -> Tensor:
    """Return the concatenation of all depths of all channels with dropout.

    Args:
        edges: The edges of the joint graph.
        edge_sets: The relation set of each edge.
        activation: Function that is applied to the inputs and after each layer.
        dropout: Share of the output to drop; 0 in evaluation.
        training: Whether edges may read features and gradients in half precision.
        starts: ``[num_entities, dim]`` input of each channel.
        reflectors: ``[num_sets, dim]`` unit vectors of the relation sets.
        by_neighbour: ``[num_channels, depth, dim]`` w of each channel and layer.
        by_relation: ``[num_channels, depth, dim]`` v of each channel and layer.
    """
    types = _Precision.types if training else SINGLE
    settings = LayerSettings(edges, edge_sets, activation is torch.relu, dropout, *types)
    seed = reflectors.new_zeros(1, dtype=torch.int64)
    if dropout:  # an evaluation must not change the random numbers of the next training
        seed = torch.randint(2**62, (1,), device=reflectors.device)
    given = (settings, seed, reflectors, by_neighbour, by_relation, *starts)
    return cast(Tensor, _FusedLayers.apply(*given))  # type: ignore[no-untyped-call]


class _FusedLayers(torch.autograd.Function):
    """Implements the layers and their gradient with a few kernels.

    Let G be the gradient of a layer's output Y before the activation, and a and d = n.r the
    attention and the product of an edge (i <- j, set s). Then ``dlogit = a (G_i.m - G_i.Y_i)``,
    since ``sum_e a_e G_i.m_e = G_i.Y_i``, and ``dd = -2 a (G_i.r) - 2 dlogit (r.w)``. Where a ReLU
    changes Y, G is zero, so its result can replace Y.
    """

    @staticmethod
    def forward(
        ctx: Any,
        settings: LayerSettings,
        seed: Tensor,
        reflectors: Tensor,
        by_neighbour: Tensor,
        by_relation: Tensor,
        *starts: Tensor,
    ) -> Tensor:
        edges, sets = settings.edges, settings.edge_sets.cols
        w, v = (kernel.transpose(0, 1).contiguous() for kernel in (by_neighbour, by_relation))
        depth, num_channels, dim = w.shape
        units = reflectors.to(settings.feature_type).contiguous()
        wide = reflectors.new_empty(len(starts[0]), num_channels * (depth + 1) * dim)
        columns = Columns(wide, seed, settings.dropout, depth + 1, settings.is_relu)
        features = [units.new_empty(num_channels, len(wide), dim)]
        for channel, start in enumerate(starts):
            here = slice(channel, channel + 1)
            activation_kernels.activate(columns, start[None], features[0][here], 0, channel)
        attended: list[Tensor] = []
        for layer in range(depth):
            given = (features[layer], units)
            along, attention = reflection_kernels.attention(edges, sets, *given, w[layer], v[layer])
            out = reflection_kernels.reflected_sum(edges, sets, attention, along, *given)
            features.append(units.new_empty(out.shape))
            activation_kernels.activate(columns, out, features[-1], layer + 1)
            attended += [along, attention, features[-1] if settings.is_relu else out]
        ctx.settings, ctx.seed = settings, seed
        ctx.save_for_backward(units, w, v, *features, *attended)
        return wide

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        settings: LayerSettings = ctx.settings
        edges, edge_sets = settings.edges, settings.edge_sets
        units, w, v, *saved = ctx.saved_tensors
        depth, num_channels, dim = w.shape
        features, attended = saved[: depth + 1], saved[depth + 1 :]
        wide = grads[0].contiguous()
        columns = Columns(wide, ctx.seed, settings.dropout, depth + 1, settings.is_relu)
        of_features: Tensor | None = None
        of_units = torch.zeros_like(units, dtype=torch.float32)
        of_w, of_v = torch.empty_like(w), torch.empty_like(v)
        for layer in reversed(range(depth)):
            along, attention, out = attended[3 * layer : 3 * layer + 3]
            grad = torch.empty_like(out, dtype=settings.gradient_type)
            activation_kernels.activate_backward(
                columns, features[layer + 1], of_features, grad, layer + 1
            )
            given = (grad, out, features[layer], units, w[layer])
            scalars, of_kernels = reflection_kernels.edge_gradients(
                edges, edge_sets.cols, attention, along, *given
            )
            of_w[layer], of_v[layer] = of_kernels
            of_features = reflection_kernels.feature_gradient(
                edges, edge_sets.cols, scalars, grad, units, w[layer]
            )
            of_units += reflection_kernels.reflector_gradient(
                edge_sets, edges.cols, scalars, grad, features[layer], w[layer], v[layer]
            )
        of_starts = wide.new_empty(num_channels, len(wide), dim)
        activation_kernels.activate_backward(columns, features[0], of_features, of_starts, 0)
        return None, None, of_units, of_w.transpose(0, 1), of_v.transpose(0, 1), *of_starts
