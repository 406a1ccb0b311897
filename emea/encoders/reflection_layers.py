"""The layers of RREA: neighbourhood means, then reflections with attention."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from emea.data.sorting import numbered_rows
from emea.encoders.joint_graph import JointGraph
from emea.encoders.kernels import cpu_kernels
from emea.encoders.kernels.compiled_layers import ACTIVATION_GRADIENTS, CompiledLayers
from emea.encoders.kernels.constant_product import ConstantProduct
from emea.encoders.kernels.cpu_kernels import EdgeArrays, edge_arrays
from emea.encoders.kernels.dropout import ByteDropout
from emea.encoders.kernels.edge_orders import EdgeOrders, edge_orders
from emea.encoders.kernels.sparse_pattern import SparsePattern
from emea.runtime import kernels


class NeighbourhoodMeans(nn.Module):
    """Computes an entity's mean over its neighbours and itself, and over its relations.

    Args:
        graph: The joint graph of both graphs.
        opposite_relations: Take the inverse of each relation of an entity instead.
    """

    def __init__(self, graph: JointGraph, opposite_relations: bool = False) -> None:
        super().__init__()
        size, relations = graph.num_entities, 2 * graph.num_relations
        around = SparsePattern(*graph.closed_neighbourhoods(), shape=(size, size))
        incident = SparsePattern(
            *graph.incident_relations(opposite_relations), shape=(size, relations)
        )
        self.around = ConstantProduct(around, around.mean_values())
        self.incident = ConstantProduct(incident, incident.mean_values())

    def forward(self, entities: Tensor, relations: Tensor) -> list[Tensor]:
        """Return ``[num_entities, dim]`` means for the entity channel and the relation channel.

        Args:
            entities: ``[num_entities, dim]`` embeddings.
            relations: ``[2 * num_relations, dim]`` embeddings of the directed relations.
        """
        return [self.around(entities), self.incident(relations)]


Activation = Callable[[Tensor], Tensor]

MAX_CHANNELS, MAX_DIM = 2, 512
"""Channels that the Triton kernels process at once, and the widest row that fits into registers."""


class ReflectionLayers(nn.Module):
    """Applies attention over neighbours that are reflected by the relations of their edge.

    Let r be the unit vector of an edge's relation set. A neighbour n sends the message
    ``m = n - 2 (n.r) r``, and its attention logit is ``m.w + r.v``. A term that depends on the
    receiving entity would be constant in its softmax, so there is no such term.

    A layer is evaluated as ``A F - 2 B R``, where ``A`` is the attention over neighbours and ``B``
    the attention times n.r over relation sets, so that only scalars exist per edge. On CUDA, fused
    kernels process all channels at once. On a CPU, compiled loops visit each edge once per layer
    and direction.

    Args:
        graph: The joint graph of both graphs.
        activation: Function that is applied to the channels' inputs and after each layer.
        dropout: Share of the output that is dropped in training.
    """

    edge_pair: Tensor

    def __init__(self, graph: JointGraph, activation: Activation, dropout: float) -> None:
        super().__init__()
        self.activation = activation
        self.dropout = ByteDropout(dropout)
        size, sets, relations = graph.num_entities, graph.num_sets, 2 * graph.num_relations
        rows, cols, edge_sets = graph.edge_rows, graph.edge_cols, graph.edge_sets
        members = SparsePattern(graph.set_rows, graph.set_relations, (sets, relations))
        self.members = ConstantProduct(members, torch.ones(members.num_nonzeros).double())
        self.edges = SparsePattern(rows, cols, shape=(size, size))
        self.edge_sets = SparsePattern(rows, edge_sets, shape=(size, sets))
        # n.r depends only on neighbour and set, so it is computed once per distinct pair
        pairs, edge_pair = numbered_rows([cols, edge_sets], [size, sets])
        self.reflections = SparsePattern(pairs[0], pairs[1], shape=(size, sets))
        self._orders: dict[torch.device, EdgeOrders] = {}
        self._arrays: EdgeArrays | None = None
        self.register_buffer("edge_pair", torch.from_numpy(edge_pair), persistent=False)

    def forward(
        self,
        starts: Sequence[Tensor],
        relations: Tensor,
        by_neighbour: Tensor,
        by_relation: Tensor,
    ) -> Tensor:
        """Return the concatenation of all depths of all channels, including their inputs.

        Args:
            starts: ``[num_entities, dim]`` input of each channel.
            relations: ``[2 * num_relations, dim]`` embeddings of the directed relations.
            by_neighbour: ``[num_channels, depth, dim]`` w of each channel and layer.
            by_relation: ``[num_channels, depth, dim]`` v of each channel and layer.

        Returns:
            ``[num_entities, num_channels * (depth + 1) * dim]``.
        """
        reflectors = normalize(self.members(relations))
        dropout = self.dropout.share if self.training else 0.0
        parameters = (reflectors, by_neighbour, by_relation)
        if self._uses_triton(reflectors, len(starts)):
            from emea.encoders.kernels.triton_layers import triton_layers

            given = (self._edge_orders(), self.activation, dropout)
            return triton_layers(*given, starts, *parameters)
        if self._uses_numba(reflectors):
            settings = self._edge_arrays(), self.activation, dropout
            compiled: Tensor = CompiledLayers.apply(settings, *parameters, *starts)  # type: ignore[no-untyped-call]
            return compiled
        # torch's products process one channel at a time
        columns = [
            rows
            for start, w, v in zip(starts, by_neighbour, by_relation, strict=True)
            for rows in self._through_layers(start, reflectors, w, v)
        ]
        dropped: Tensor = self.dropout(torch.cat(columns, dim=1))
        return dropped

    def _uses_triton(self, reflectors: Tensor, num_channels: int) -> bool:
        fits = num_channels <= MAX_CHANNELS and reflectors.shape[1] <= MAX_DIM
        known = self.activation in ACTIVATION_GRADIENTS
        return known and fits and kernels.uses_triton(reflectors)

    def _uses_numba(self, reflectors: Tensor) -> bool:
        return self.activation in ACTIVATION_GRADIENTS and cpu_kernels.usable(reflectors)

    def _edge_orders(self) -> EdgeOrders:
        """Return the orders of the edges; they are computed once, as a CUDA graph may read them."""
        device = self.edges.rows.device
        if device not in self._orders:
            self._orders[device] = edge_orders(
                self.edges.rows, self.edges.cols, self.edge_sets.cols, self.edge_sets.shape
            )
        return self._orders[device]

    def _edge_arrays(self) -> EdgeArrays:
        """Return the edges on a CPU; a conversion in every step would slow down small graphs."""
        if self._arrays is None:
            self._arrays = edge_arrays(self.edges, self.edge_sets.cols)
        return self._arrays

    def _through_layers(
        self, features: Tensor, reflectors: Tensor, by_neighbour: Tensor, by_relation: Tensor
    ) -> list[Tensor]:
        """Return the activated outputs of all depths of one channel."""
        outputs = [self.activation(features)]
        for w, v in zip(by_neighbour, by_relation, strict=True):
            outputs.append(self.activation(self.attend(outputs[-1], reflectors, w, v)))
        return outputs

    def attend(
        self, features: Tensor, reflectors: Tensor, by_neighbour: Tensor, by_relation: Tensor
    ) -> Tensor:
        """Apply one layer to the features of one channel, ``[num_entities, dim]``."""
        along = self.reflections.pair_dots(features, reflectors).index_select(0, self.edge_pair)
        sets = self.edge_sets.cols
        logits = (
            (features @ by_neighbour).index_select(0, self.edges.cols)
            - 2 * along * (reflectors @ by_neighbour).index_select(0, sets)
            + (reflectors @ by_relation).index_select(0, sets)
        )
        attention = self.edges.row_softmax(logits)
        straight = self.edges.weighted_sum(attention, features)
        return straight + self.edge_sets.weighted_sum(-2 * attention * along, reflectors)
