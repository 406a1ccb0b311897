"""RREA: relational reflection entity alignment (Mao et al., CIKM 2020)."""

import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import JointGraph
from emea.encoders.reflection_layers import NeighbourhoodMeans, ReflectionLayers


class RREA(nn.Module):
    """Encodes entities by graph attention; edges reflect their neighbours by their relations.

    Two channels start from the mean of neighbouring entity embeddings and from the mean of
    incident relation embeddings. Both pass through the same layers (``ReflectionLayers``), and the
    outputs of all depths are concatenated.

    Args:
        graph: The joint graph of both graphs.
        dim: Width of entity and relation embeddings.
        depth: Number of attention layers.
        dropout: Share of the output that is dropped in training.
        opposite_relations: The relation channel uses the embedding of r⁻¹ for the head of r and
            that of r for its tail, as in the released code. By default it uses the embeddings that
            also reflect the neighbours of the entity: r for the head, r⁻¹ for the tail.

    Shapes:
        output: ``[num_entities, 2 * (depth + 1) * dim]``, source entities first.
    """

    def __init__(
        self,
        graph: JointGraph,
        dim: int = 100,
        depth: int = 2,
        dropout: float = 0.3,
        opposite_relations: bool = False,
    ) -> None:
        super().__init__()
        self.entities = nn.Parameter(torch.empty(graph.num_entities, dim).uniform_(-0.05, 0.05))
        relations = torch.empty(2 * graph.num_relations, dim).uniform_(-0.05, 0.05)
        self.relations = nn.Parameter(relations)
        bound = (6.0 / (3 * dim + 1)) ** 0.5  # Glorot: 3 * dim inputs, 1 output
        self.neighbour_attention = nn.Parameter(torch.empty(depth, dim).uniform_(-bound, bound))
        self.relation_attention = nn.Parameter(torch.empty(depth, dim).uniform_(-bound, bound))
        self.means = NeighbourhoodMeans(graph, opposite_relations)
        self.layers = ReflectionLayers(graph, torch.relu, dropout)

    def forward(self) -> Tensor:
        """Return the embeddings of all entities."""
        # one attention kernel per layer, shared by both channels
        by_neighbour = self.neighbour_attention.expand(2, -1, -1)
        by_relation = self.relation_attention.expand(2, -1, -1)
        starts = self.means(self.entities, self.relations)
        rows: Tensor = self.layers(starts, self.relations, by_neighbour, by_relation)
        return rows
