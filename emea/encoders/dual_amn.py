"""Dual-AMN (Mao et al., WWW 2021): the layers of RREA, followed by proxy matching."""

import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import JointGraph
from emea.encoders.kernels.dropout import ByteDropout
from emea.encoders.reflection_layers import NeighbourhoodMeans, ReflectionLayers


class ProxyMatching(nn.Module):
    """Compares each entity with a few learned proxies that represent all entities.

    With rows h, proxies q, attention ``a = softmax(cos(h, q))`` and ``c = a q``, the difference
    ``h - c`` contains what the proxies do not explain. A gate ``g = sigmoid((h - c) W + b)`` mixes
    it with the row: ``g h + (1 - g) (h - c)``.

    Args:
        dim: Width of the rows.
        num_proxies: Number of learned proxies.
    """

    def __init__(self, dim: int, num_proxies: int) -> None:
        super().__init__()
        self.proxies = nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_proxies, dim)))
        self.gate = nn.Parameter(nn.init.xavier_uniform_(torch.empty(dim, dim)))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the mixed rows, ``[num_entities, dim]`` like the input."""
        directions = nn.functional.normalize(self.proxies, eps=1e-6)
        # scale the scores instead of the rows, which avoids a copy of the rows
        lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(1e-6)
        attention = torch.softmax(rows @ directions.t() / lengths, dim=1)
        common = attention @ self.proxies
        apart = rows - common
        gate = torch.sigmoid(torch.addmm(self.bias, apart, self.gate))
        return torch.addcmul(apart, gate, common)


NUM_CHANNELS = 2
"""The entity channel and the relation channel."""


class DualAMN(nn.Module):
    """Encodes entities by relational attention in each graph and proxy attention across both.

    Two channels start from the mean of neighbouring entity embeddings and from the mean of
    incident relation embeddings. In the graphs, the edge's relations reflect the neighbours as in
    RREA, but the attention depends on the relations only, with separate kernels for each channel
    and layer. The concatenated depths of a channel then pass through its ``ProxyMatching``.

    Args:
        graph: The joint graph of both graphs.
        dim: Width of entity and relation embeddings.
        depth: Number of attention layers.
        num_proxies: Number of proxies of each channel.
        dropout: Share of the output that is dropped in training.

    Shapes:
        output: ``[num_entities, 2 * (depth + 1) * dim]``, source entities first.
    """

    no_attention: Tensor

    def __init__(
        self,
        graph: JointGraph,
        dim: int = 128,
        depth: int = 2,
        num_proxies: int = 64,
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        self.entities = nn.Parameter(torch.empty(graph.num_entities, dim).uniform_(-0.05, 0.05))
        relations = torch.empty(2 * graph.num_relations, dim).uniform_(-0.05, 0.05)
        self.relations = nn.Parameter(relations)
        bound = (6.0 / (dim + 1)) ** 0.5  # Glorot: dim inputs, 1 output
        kernels = torch.empty(NUM_CHANNELS, depth, dim).uniform_(-bound, bound)
        self.relation_attention = nn.Parameter(kernels)
        width = (depth + 1) * dim
        self.matching = nn.ModuleList(
            ProxyMatching(width, num_proxies) for _ in range(NUM_CHANNELS)
        )
        self.means = NeighbourhoodMeans(graph)
        self.layers = ReflectionLayers(graph, torch.tanh, dropout=0.0)
        self.dropout = ByteDropout(dropout)
        self.register_buffer("no_attention", torch.zeros_like(kernels), persistent=False)

    def forward(self) -> Tensor:
        """Return the embeddings of all entities."""
        starts = self.means(self.entities, self.relations)
        inner = self.layers(starts, self.relations, self.no_attention, self.relation_attention)
        channels = zip(self.matching, inner.chunk(NUM_CHANNELS, dim=1), strict=True)
        matched = torch.cat([matching(channel) for matching, channel in channels], dim=1)
        rows: Tensor = self.dropout(matched)
        return rows
