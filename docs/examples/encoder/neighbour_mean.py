"""An encoder in thirty lines: an entity is the mean of its neighbourhood, layer by layer."""

import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import JointGraph
from emea.kernels.sparse_pattern import NormalisedAdjacency


class NeighbourMean(nn.Module):
    """Graph convolutions without weights over trained entity embeddings.

    Args:
        graph: both graphs as one; source entities first, then target entities.
        dim: width of the embeddings.
        depth: how many steps an entity looks around.

    Shapes:
        output: ``[num_entities, (depth + 1) * dim]``.
    """

    def __init__(self, graph: JointGraph, dim: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.entities = nn.Parameter(torch.randn(graph.num_entities, dim) * dim**-0.5)
        self.adjacency = NormalisedAdjacency(
            graph.triples()[:, [0, 2]], graph.num_entities
        )
        self.depth = depth

    def forward(self) -> Tensor:
        """Embeddings of all entities."""
        layers = [self.entities]
        weights = self.adjacency.weights.to(self.entities.dtype)
        for _ in range(self.depth):
            layers.append(self.adjacency.weighted_sum(weights, layers[-1]))
        return torch.cat(layers, dim=1)
