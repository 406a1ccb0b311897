"""Attention over neighbours that are reflected by the relations of their edge."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from emea.data.arrays import IntArray
from emea.data.sorting import numbered_rows
from emea.kernels import choice
from emea.kernels.dropout import ByteDropout
from emea.kernels.edge_orders import EdgeOrders, edge_orders
from emea.kernels.numba_attention import EdgeArrays, edge_arrays
from emea.kernels.numba_layers import ACTIVATION_GRADIENTS, NumbaLayers
from emea.kernels.sparse_pattern import SparsePattern

Activation = Callable[[Tensor], Tensor]

MAX_CHANNELS, MAX_DIM = 2, 512
"""Channels that the Triton kernels process at once, and the widest row that fits into registers."""


class SetEdges(NamedTuple):
    """Edges (i <- j, relation set s) of a graph.

    Args:
        rows: ``[num_edges]`` entity i of each edge, ascending.
        cols: ``[num_edges]`` neighbour j.
        sets: ``[num_edges]`` relation set s.
        num_entities: Number of entities.
        num_sets: Number of relation sets.
    """

    rows: IntArray
    cols: IntArray
    sets: IntArray
    num_entities: int
    num_sets: int


class LayerParameters(NamedTuple):
    """The parameters of all layers.

    Args:
        reflectors: ``[num_sets, dim]`` unit vector r of each relation set.
        by_neighbour: ``[num_channels, depth, dim]`` w of each channel and layer.
        by_relation: ``[num_channels, depth, dim]`` v of each channel and layer.
    """

    reflectors: Tensor
    by_neighbour: Tensor
    by_relation: Tensor


class ReflectedAttention(nn.Module):
    """Applies layers of attention over reflected neighbours to several channels.

    Let r be the unit vector of an edge's relation set. A neighbour n sends the message
    ``m = n - 2 (n.r) r``, and its attention logit is ``m.w + r.v``. A term that depends on the
    receiving entity would be constant in its softmax, so there is no such term.

    A layer is evaluated as ``A F - 2 B R``, where ``A`` is the attention over neighbours and ``B``
    the attention times n.r over relation sets, so that only scalars exist per edge. On CUDA, fused
    kernels process all channels at once. On a CPU, compiled loops visit each edge once per layer
    and direction.

    Args:
        edges: The edges.
        activation: Function that is applied to the channels' inputs and after each layer.
        dropout: Share of the output that is dropped in training.
    """

    edge_pair: Tensor

    def __init__(self, edges: SetEdges, activation: Activation, dropout: float) -> None:
        super().__init__()
        self.activation = activation
        self.dropout = ByteDropout(dropout)
        by_set = (edges.num_entities, edges.num_sets)
        self.edges = SparsePattern(
            edges.rows, edges.cols, shape=(edges.num_entities, edges.num_entities)
        )
        self.edge_sets = SparsePattern(edges.rows, edges.sets, shape=by_set)
        # n.r depends only on neighbour and set, so it is computed once per distinct pair
        pairs, edge_pair = numbered_rows([edges.cols, edges.sets], list(by_set))
        self.reflections = SparsePattern(pairs[0], pairs[1], shape=by_set)
        self.register_buffer("edge_pair", torch.from_numpy(edge_pair), persistent=False)
        self._orders: dict[torch.device, EdgeOrders] = {}
        self._arrays: EdgeArrays | None = None

    def attend(
        self,
        features: Tensor,
        reflectors: Tensor,
        by_neighbour: Tensor,
        by_relation: Tensor,
    ) -> Tensor:
        """Apply one layer to the features of one channel, ``[num_entities, dim]``."""
        neighbours = self.edges.cols
        sets = self.edge_sets.cols
        # n.r of each edge, ``[num_edges]``
        dots = self.reflections.pair_dots(features, reflectors)
        along = dots.index_select(0, self.edge_pair)
        # m.w + r.v = n.w - 2 (n.r) (r.w) + r.v; each product exists once per entity or set
        logits = (
            (features @ by_neighbour).index_select(0, neighbours)
            - 2 * along * (reflectors @ by_neighbour).index_select(0, sets)
            + (reflectors @ by_relation).index_select(0, sets)
        )
        attention = self.edges.row_softmax(logits)
        # the sum of the messages: of the neighbours, and of what their reflections subtract
        straight = self.edges.weighted_sum(attention, features)
        return straight + self.edge_sets.weighted_sum(
            -2 * attention * along, reflectors
        )

    def torch_forward(
        self, starts: Sequence[Tensor], parameters: LayerParameters
    ) -> Tensor:
        """Return the same as ``forward``, one channel at a time."""
        columns: list[Tensor] = []
        for start, w, v in zip(
            starts, parameters.by_neighbour, parameters.by_relation, strict=True
        ):
            outputs = [self.activation(start)]
            for of_neighbour, of_relation in zip(w, v, strict=True):
                attended = self.attend(
                    outputs[-1], parameters.reflectors, of_neighbour, of_relation
                )
                outputs.append(self.activation(attended))
            columns += outputs
        dropped: Tensor = self.dropout(torch.cat(columns, dim=1))
        return dropped

    def forward(self, starts: Sequence[Tensor], parameters: LayerParameters) -> Tensor:
        """Return the concatenation of all depths of all channels, including their inputs.

        Args:
            starts: ``[num_entities, dim]`` input of each channel.
            parameters: The parameters of all layers.

        Returns:
            ``[num_entities, num_channels * (depth + 1) * dim]``.
        """
        share = self.dropout.share if self.training else 0.0
        if self.uses_triton(parameters.reflectors, len(starts)):
            from emea.kernels.triton_layers import LayerSettings, triton_layers

            is_relu = self.activation is torch.relu
            settings = LayerSettings(self.orders(), is_relu, share)
            return triton_layers(settings, starts, *parameters)
        if self.uses_numba(parameters.reflectors):
            given = self._edge_arrays(), self.activation, share
            compiled: Tensor = NumbaLayers.apply(given, *parameters, *starts)  # type: ignore[no-untyped-call]
            return compiled
        return self.torch_forward(starts, parameters)

    def uses_triton(self, reflectors: Tensor, num_channels: int) -> bool:
        """Return whether fused kernels process these vectors on a GPU."""
        fits = num_channels <= MAX_CHANNELS and reflectors.shape[1] <= MAX_DIM
        known = self.activation in ACTIVATION_GRADIENTS
        return known and fits and choice.uses_triton(reflectors)

    def uses_numba(self, reflectors: Tensor) -> bool:
        """Return whether compiled loops process these vectors on a CPU."""
        known = self.activation in ACTIVATION_GRADIENTS
        return known and choice.uses_numba_in_training(reflectors)

    def orders(self) -> EdgeOrders:
        """Return the orders of the edges; they are computed once, as a CUDA graph may read them."""
        device = self.edges.rows.device
        if device not in self._orders:
            self._orders[device] = edge_orders(
                self.edges.rows,
                self.edges.cols,
                self.edge_sets.cols,
                self.edge_sets.shape,
            )
        return self._orders[device]

    def _edge_arrays(self) -> EdgeArrays:
        """Return the edges on a CPU; a conversion in every step would slow down small graphs."""
        if self._arrays is None:
            self._arrays = edge_arrays(self.edges, self.edge_sets.cols)
        return self._arrays
