"""RREA: relational reflection entity alignment (Mao et al., CIKM 2020), and its margin loss."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import JointGraph
from emea.encoders.memory import EncoderMemory, RunSizes, reflection_memory
from emea.encoders.objective import Objective, drawn_links
from emea.encoders.reflection_layers import NeighbourhoodMeans, ReflectionLayers
from emea.encoders.settings import MarginSettings, RREASettings
from emea.kernels.margin_loss import margin_loss
from emea.kernels.pair_distance import pair_distances


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

    Examples:
        >>> from emea.data.sources.synthetic import synthetic_pair
        >>> from emea.encoders.joint_graph import join_graphs
        >>> graph = join_graphs(synthetic_pair(num_entities=20))
        >>> encoder = RREA(graph, dim=4, depth=2, dropout=0.0, opposite_relations=False)
        >>> encoder().shape == (graph.num_entities, 2 * 3 * 4)
        True
    """

    def __init__(
        self,
        graph: JointGraph,
        dim: int = RREASettings.dim,
        depth: int = RREASettings.depth,
        dropout: float = RREASettings.dropout,
        opposite_relations: bool = RREASettings.opposite_relations,
    ) -> None:
        super().__init__()
        self.entities = nn.Parameter(
            torch.empty(graph.num_entities, dim).uniform_(-0.05, 0.05)
        )
        relations = torch.empty(2 * graph.num_relations, dim).uniform_(-0.05, 0.05)
        self.relations = nn.Parameter(relations)
        bound = (6.0 / (3 * dim + 1)) ** 0.5  # Glorot: 3 * dim inputs, 1 output
        self.neighbour_attention = nn.Parameter(
            torch.empty(depth, dim).uniform_(-bound, bound)
        )
        self.relation_attention = nn.Parameter(
            torch.empty(depth, dim).uniform_(-bound, bound)
        )
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

    @staticmethod
    def estimated_memory(
        encoder: Mapping[str, Any], objective: Mapping[str, Any], sizes: RunSizes
    ) -> EncoderMemory:
        """Return the memory of a run with these settings of the encoder and its objective."""
        num_copies = 7.0 if sizes.is_cpu else 4.0
        return reflection_memory(encoder["dim"], encoder["depth"], sizes, num_copies)


class MarginObjective(Objective):
    """Makes linked entities closer than random pairs by a margin.

    For a link (s, t) and entities f_s, f_t sampled from both graphs the loss is
    ``max(0, margin + |s - t| - |s - f_t|) + max(0, margin + |s - t| - |f_s - t|)``,
    averaged over a batch that contains all links equally often, or in proportion to their weights.

    Args:
        margin: The margin (gamma in the paper).
        batch_size: Number of links sampled per step; links repeat if there are fewer. ``None``
            means the number of entities, as in the reference runs.
    """

    def __init__(
        self,
        margin: float = MarginSettings.margin,
        batch_size: int | None = MarginSettings.batch_size,
    ) -> None:
        super().__init__()
        self.margin = margin
        self.batch_size = batch_size

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Return the loss of one step."""
        rows = encoder()
        size = self.batch_size or len(rows)
        # false entities are random, so the order of the links does not matter; sorting takes longer
        # than the loss on a GPU
        keep_order = rows.is_cuda and size >= len(links)
        picked = drawn_links(links, size, self.link_weights, keep_order)
        source, target = (ids.index_select(0, picked) for ids in links.unbind(1))
        false_source, false_target = torch.randint(
            len(rows), (2, size), device=rows.device
        )
        # the distance of a repeated link is computed once
        if self.link_weights is None:
            num_distinct = min(len(links), size)
            once = source[:num_distinct], target[:num_distinct]
        else:
            num_distinct = len(links)
            once = links[:, 0], links[:, 1]
        first = torch.cat([once[0], source, target])
        second = torch.cat([once[1], false_target, false_source])
        distances = pair_distances(rows, first, second)
        places = None if self.link_weights is None else picked
        return margin_loss(distances, places, num_distinct, self.margin)
