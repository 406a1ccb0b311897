"""IPTransE: joint translational embeddings with shared rows (Zhu et al., IJCAI 2017)."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from emea.encoders.counterparts import counterparts
from emea.encoders.joint_graph import JointGraph
from emea.encoders.triple_paths import MAX_ENDS, composed_relations


class IPTransE(nn.Module):
    """Unit vectors of entities and relations; linked entities have one vector between them.

    Args:
        graph: both graphs as one.
        dim: width of the embeddings.
        max_ends: paths that lead to more ends than this are no evidence for a relation.

    Shapes:
        output: ``[num_entities, dim]`` unit rows, source entities first.
    """

    row_of: Tensor
    triples: Tensor
    paths: Tensor
    path_ends: Tensor

    def __init__(self, graph: JointGraph, dim: int = 100, max_ends: int = MAX_ENDS) -> None:
        super().__init__()
        self.num_source = graph.num_source
        self.entities = truncated_normal(graph.num_entities, dim)
        self.relations = truncated_normal(graph.num_relations, dim)
        # kept with the weights: they say whose each row is
        self.register_buffer("row_of", torch.arange(graph.num_entities))
        triples = graph.triples()
        paths, num_ends = composed_relations(triples, max_ends)
        for name, values in (("triples", triples), ("paths", paths), ("path_ends", num_ends)):
            tensor = torch.from_numpy(np.ascontiguousarray(values))
            self.register_buffer(name, tensor, persistent=False)

    def share(self, links: Tensor) -> None:
        """Give linked entities the source entity's row, and all others their own.

        Of several source entities linked to one target entity, the first shares its row.
        """
        partner = counterparts(links.cpu().numpy(), len(self.entities))
        rows = np.arange(len(partner))
        target = rows[self.num_source :]
        linked = target[partner[target] >= 0]
        linked = linked[partner[partner[linked]] == linked]
        rows[linked] = partner[linked]
        self.row_of.copy_(torch.from_numpy(rows))

    def forward(self) -> Tensor:
        """Embeddings of all entities."""
        return self.entity_rows(slice(None))

    def entity_rows(self, entities: Tensor | slice) -> Tensor:
        """Embeddings of these entities."""
        return normalize(self.entities).index_select(0, self.row_of[entities])

    def relation_rows(self) -> Tensor:
        """Embeddings of all relations."""
        return normalize(self.relations)


def truncated_normal(size: int, dim: int) -> nn.Parameter:
    """Normal values of variance ``1 / dim``, none beyond two standard deviations."""
    scale = dim**-0.5
    rows = torch.empty(size, dim)
    return nn.Parameter(nn.init.trunc_normal_(rows, std=scale, a=-2 * scale, b=2 * scale))
