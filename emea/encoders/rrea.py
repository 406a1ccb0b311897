"""RREA: relational reflection entity alignment (Mao et al., CIKM 2020)."""

import numpy as np
import torch
from torch import Tensor, nn

from emea.encoders.dropout import ByteDropout
from emea.encoders.joint_graph import JointGraph
from emea.encoders.sparse_pattern import SparsePattern


class RREA(nn.Module):
    """Graph attention whose messages are neighbours reflected by the edge's relations.

    With unit vector r of an edge (the sum of its relations' embeddings, normalised), a
    neighbour n arrives as n - 2 (n.r) r. Two channels start from the mean of neighbouring
    entity embeddings and from the mean of incident relation embeddings; both pass through
    the same layers, and the outputs of all depths are concatenated.

    The layer is evaluated as ``A F - 2 B R``, with ``A`` the attention over neighbours, ``B``
    the attention times n.r over relation sets: only scalars exist per edge. The attention
    logit's term in the receiving entity is constant along its softmax, so it is left out.

    Args:
        graph: both graphs as one.
        dim: width of entity and relation embeddings.
        depth: attention layers.
        dropout: share of the output dropped in training.

    Shapes:
        output: ``[num_entities, 2 * (depth + 1) * dim]``, source entities first.
    """

    edge_pair: Tensor
    around_mean: Tensor
    incident_mean: Tensor

    def __init__(
        self, graph: JointGraph, dim: int = 100, depth: int = 2, dropout: float = 0.3
    ) -> None:
        super().__init__()
        self.entities = nn.Parameter(torch.empty(graph.num_entities, dim).uniform_(-0.05, 0.05))
        relations = torch.empty(2 * graph.num_relations, dim).uniform_(-0.05, 0.05)
        self.relations = nn.Parameter(relations)
        bound = (6.0 / (3 * dim + 1)) ** 0.5  # Glorot for a kernel of 3 * dim inputs, 1 output
        self.neighbour_attention = nn.Parameter(torch.empty(depth, dim).uniform_(-bound, bound))
        self.relation_attention = nn.Parameter(torch.empty(depth, dim).uniform_(-bound, bound))
        self.dropout = ByteDropout(dropout)
        self._build_patterns(graph)

    def _build_patterns(self, graph: JointGraph) -> None:
        size, sets, relations = graph.num_entities, graph.num_sets, 2 * graph.num_relations
        rows, cols, edge_sets = graph.edge_rows, graph.edge_cols, graph.edge_sets
        self.around = SparsePattern(*graph.closed_neighbourhoods(), shape=(size, size))
        self.incident = SparsePattern(*graph.incident_relations(), shape=(size, relations))
        self.register_buffer("around_mean", self.around.mean_values(), persistent=False)
        self.register_buffer("incident_mean", self.incident.mean_values(), persistent=False)
        self.members = SparsePattern(graph.set_rows, graph.set_relations, (sets, relations))
        self.edges = SparsePattern(rows, cols, shape=(size, size))
        self.edge_sets = SparsePattern(rows, edge_sets, shape=(size, sets))
        # an edge's n.r depends on neighbour and set alone: computed once per distinct pair
        width = max(sets, 1)
        keys, edge_pair = np.unique(cols * width + edge_sets, return_inverse=True)
        self.reflections = SparsePattern(keys // width, keys % width, shape=(size, sets))
        self.register_buffer("edge_pair", torch.from_numpy(edge_pair), persistent=False)

    def forward(self) -> Tensor:
        """Embeddings of all entities."""
        ones = self.relations.new_ones(self.members.num_nonzeros)
        reflectors = nn.functional.normalize(self.members.weighted_sum(ones, self.relations))
        dtype = self.entities.dtype
        entity_mean = self.around.weighted_sum(self.around_mean.to(dtype), self.entities)
        relation_mean = self.incident.weighted_sum(self.incident_mean.to(dtype), self.relations)
        outputs = self._channel(entity_mean, reflectors)
        outputs += self._channel(relation_mean, reflectors)
        rows: Tensor = self.dropout(torch.cat(outputs, dim=1))
        return rows

    def _channel(self, features: Tensor, reflectors: Tensor) -> list[Tensor]:
        outputs = [torch.relu(features)]
        for by_neighbour, by_relation in zip(
            self.neighbour_attention, self.relation_attention, strict=True
        ):
            layer = self._layer(outputs[-1], reflectors, by_neighbour, by_relation)
            outputs.append(torch.relu(layer))
        return outputs

    def _layer(
        self, features: Tensor, reflectors: Tensor, by_neighbour: Tensor, by_relation: Tensor
    ) -> Tensor:
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
