"""The layers of RREA: neighbourhood means, then reflections with attention."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from emea.encoders.joint_graph import JointGraph
from emea.kernels.constant_product import ConstantProduct
from emea.kernels.reflection import (
    Activation,
    LayerParameters,
    ReflectedAttention,
    SetEdges,
)
from emea.kernels.sparse_pattern import SparsePattern


class NeighbourhoodMeans(nn.Module):
    """Computes an entity's mean over its neighbours and itself, and over its relations.

    Args:
        graph: The joint graph of both graphs.
        opposite_relations: Take the inverse of each relation of an entity instead.
    """

    def __init__(self, graph: JointGraph, opposite_relations: bool = False) -> None:
        super().__init__()
        size = graph.num_entities
        relations = 2 * graph.num_relations
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


class ReflectionLayers(nn.Module):
    """Applies `ReflectedAttention` with the sums of the relations' embeddings as reflectors.

    Args:
        graph: The joint graph of both graphs.
        activation: Function that is applied to the channels' inputs and after each layer.
        dropout: Share of the output that is dropped in training.
    """

    def __init__(
        self, graph: JointGraph, activation: Activation, dropout: float
    ) -> None:
        super().__init__()
        relations = 2 * graph.num_relations
        members = SparsePattern(
            graph.set_rows, graph.set_relations, (graph.num_sets, relations)
        )
        ones = torch.ones(members.num_nonzeros).double()
        self.members = ConstantProduct(members, ones)
        edges = SetEdges(
            rows=graph.edge_rows,
            cols=graph.edge_cols,
            sets=graph.edge_sets,
            num_entities=graph.num_entities,
            num_sets=graph.num_sets,
        )
        self.attention = ReflectedAttention(edges, activation, dropout)

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
        parameters = LayerParameters(reflectors, by_neighbour, by_relation)
        rows: Tensor = self.attention(starts, parameters)
        return rows
