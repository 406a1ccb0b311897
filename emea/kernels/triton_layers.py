"""All reflection layers of an encoder on CUDA, as one differentiable function.

The module can only be imported if Triton is installed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from emea.kernels import (
    triton_activation,
    triton_attention,
    triton_attention_gradient,
)
from emea.kernels.constant_product import RowMarks, marks_of, no_marks
from emea.kernels.edge_orders import EdgeOrders
from emea.kernels.triton_activation import Columns, NextGradients
from emea.kernels.triton_attention import Layer
from emea.kernels.triton_attention_gradient import RowGradients


class LayerSettings(NamedTuple):
    """Holds the edges of the joint graph, the activation and the dropout."""

    orders: EdgeOrders
    is_relu: bool
    dropout: float


def triton_layers(
    settings: LayerSettings, starts: Sequence[Tensor], *parameters: Tensor
) -> Tensor:
    """Return the concatenation of all depths of all channels with dropout.

    Args:
        settings: The edges of the joint graph, the activation, and the dropout; 0 in evaluation.
        starts: ``[num_entities, dim]`` input of each channel.
        *parameters: Reflectors, w and v, as in ``LayerParameters``.
    """
    seed = starts[0].new_zeros(1, dtype=torch.int64)
    if (
        settings.dropout
    ):  # an evaluation must not change the random numbers of the training
        seed = torch.randint(2**62, (1,), device=seed.device)
    rows = _TritonLayers.apply(settings, seed, *parameters, *starts)  # type: ignore[no-untyped-call]
    return cast(Tensor, rows)


class _TritonLayers(torch.autograd.Function):
    """Implements the layers and their gradient with a few kernels.

    Let G be the gradient of a layer's output Y before the activation, and a and d = n.r the
    attention and the product of an edge (i <- j, set s). Then ``dlogit = a (G_i.m - G_i.Y_i)``,
    since ``sum_e a_e G_i.m_e = G_i.Y_i``, and ``dd = -2 a (G_i.r) - 2 dlogit (r.w)``. Where a ReLU
    changes Y, G is zero, so its result can replace Y. As a logit is ``n.w - 2 d (r.w) + r.v``, the
    gradients of w and v are sums over entities and sets instead of edges.
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
        w, v = (
            kernel.transpose(0, 1).contiguous()
            for kernel in (by_neighbour, by_relation)
        )
        depth, num_channels, dim = w.shape
        units = reflectors.contiguous()
        # the products of every set with w and v of all layers and channels
        kernels = torch.stack([w, v], dim=2).view(-1, dim)
        set_terms = (reflectors @ kernels.T).view(
            len(reflectors), depth, num_channels, 2
        )
        wide = reflectors.new_empty(len(starts[0]), num_channels * (depth + 1) * dim)
        columns = Columns(wide, seed, settings.dropout, depth + 1, settings.is_relu)
        features = [units.new_empty(num_channels, len(wide), dim)]
        terms = reflectors.new_empty(num_channels, len(wide))
        for channel, start in enumerate(starts):
            here = slice(channel, channel + 1)
            kernel = w[0, here] if depth else None
            given = (columns, start[None], features[0][here])
            triton_activation.activate(
                *given, depth=0, channel=channel, kernel=kernel, terms=terms[here]
            )
        ctx.layers = []
        for level in range(depth):
            layer = Layer(
                features[-1], units, terms, set_terms[:, level], w[level], v[level]
            )
            out, edge_values = triton_attention.attend(settings.orders, layer)
            features.append(units.new_empty(out.shape))
            kernel = w[level + 1] if level + 1 < depth else None
            terms = torch.empty_like(terms)
            triton_activation.activate(
                columns,
                out,
                features[-1],
                depth=level + 1,
                channel=0,
                kernel=kernel,
                terms=terms,
            )
            ctx.layers.append(
                (layer, edge_values, features[-1] if settings.is_relu else out)
            )
        ctx.settings = settings
        ctx.seed = seed
        ctx.features = features
        ctx.marks = RowMarks()
        ctx.marks_of_starts = [marks_of(start) for start in starts]
        ctx.save_for_backward(reflectors)
        return wide

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        settings: LayerSettings = ctx.settings
        (reflectors,) = ctx.saved_tensors
        depth, (num_channels, num_rows, dim) = len(ctx.layers), ctx.features[0].shape
        wide = grads[0].contiguous()
        marks = ctx.marks.taken(wide)
        columns = Columns(
            wide, ctx.seed, settings.dropout, depth + 1, settings.is_relu, marks
        )
        following: NextGradients | None = None
        of_units = (
            torch.empty_like(reflectors) if depth else torch.zeros_like(reflectors)
        )
        of_w, of_v = wide.new_empty(2, depth, num_channels, dim)
        reached = no_marks(num_rows, wide.device, depth)
        for level in reversed(range(depth)):
            layer, edge_values, out = ctx.layers[level]
            grad = wide.new_empty(num_channels, num_rows, dim)
            active = triton_activation.activate_backward(
                columns, ctx.features[level + 1], following, grad, level + 1
            )
            of_rows, given = RowGradients(grad, active), (settings.orders, layer)
            scalars = triton_attention_gradient.edge_gradients(
                *given, edge_values, out=out, grad=of_rows, reached=reached[level]
            )
            of_inputs = triton_attention_gradient.feature_gradient(
                *given, scalars, of_rows, reached[level]
            )
            sums = triton_attention_gradient.add_reflector_gradient(
                *given, scalars, of_rows, out=of_units, is_first=level == depth - 1
            )
            of_v[level], of_products = (sums.flatten(0, 1) @ reflectors).unflatten(
                0, (2, -1)
            )
            of_w[level] = -2 * of_products
            following = NextGradients(*of_inputs, reached[level], of_w[level])
        of_starts = wide.new_empty(num_channels, num_rows, dim)
        active = triton_activation.activate_backward(
            columns, ctx.features[0], following, of_starts, 0
        )
        for channel, noted in enumerate(ctx.marks_of_starts):
            if noted is not None:
                noted.note(of_starts[channel], active[channel])
        return (
            None,
            None,
            of_units,
            of_w.transpose(0, 1),
            of_v.transpose(0, 1),
            *of_starts,
        )
