"""AliNet: gated aggregation of direct and distant neighbours (Sun et al., AAAI 2020)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from emea.data.arrays import IntArray
from emea.encoders.alinet_layer import AliNetLayer, glorot
from emea.encoders.counterparts import NOBODY, counterparts
from emea.encoders.joint_graph import JointGraph
from emea.encoders.normalised_adjacency import NormalisedAdjacency
from emea.encoders.relation_consistency import RelationConsistency
from emea.encoders.triple_paths import NUM_COMMON_PATTERNS, two_hop_pairs


class AliNet(nn.Module):
    """Layers over direct and distant neighbours; the last one sees direct neighbours alone.

    The links of a fit also give edges: where two entities are joined by a triple and their
    counterparts are not, the counterparts are joined, too (``augment``).

    Args:
        graph: both graphs as one.
        dims: width of the input embeddings and of each layer's output.
        num_common_patterns: most frequent relation pairs of each graph that make no distant
            neighbours.

    Shapes:
        output: ``[num_entities, sum(dims)]`` unit rows, source entities first: the layers'
        outputs, then the input, each of equal length.
    """

    partners: Tensor

    def __init__(
        self,
        graph: JointGraph,
        dims: Sequence[int] = (500, 400, 300),
        num_common_patterns: int = NUM_COMMON_PATTERNS,
    ) -> None:
        super().__init__()
        if len(dims) < 2:
            raise ValueError(f"dims are those of the input and of one layer or more, got {dims}")
        self.num_source = graph.num_source
        self.num_relations = graph.num_relations
        self.features = glorot(graph.num_entities, dims[0])
        last = len(dims) - 2
        self.layers = nn.ModuleList(
            AliNetLayer(inputs, outputs, distant=index < last)
            for index, (inputs, outputs) in enumerate(pairwise(dims))
        )
        self.triples = graph.triples()
        of_source = self.triples[:, 0] < graph.num_source
        sides = (self.triples[of_source], self.triples[~of_source])
        distant = np.concatenate([two_hop_pairs(side, num_common_patterns) for side in sides])
        self.far = NormalisedAdjacency(distant, graph.num_entities)
        # kept with the weights: they are of little use without the edges they were trained on
        nobody = torch.full((graph.num_entities,), NOBODY)
        self.register_buffer("partners", nobody)
        self.register_load_state_dict_post_hook(_rebuild)  # type: ignore[no-untyped-call]
        self._build()

    def augment(self, links: Tensor) -> None:
        """Take these links' edges, and no others, beside those of the triples."""
        partners = counterparts(links.cpu().numpy(), len(self.features))
        self.partners.copy_(torch.from_numpy(partners))
        self._build()

    def forward(self) -> Tensor:
        """Embeddings of all entities."""
        parts = [*self.layer_outputs(), self.features]
        return normalize(torch.cat([normalize(part) for part in parts], dim=1))

    def layer_outputs(self) -> list[Tensor]:
        """Outputs of the layers, first to last."""
        outputs: list[Tensor] = [self.features]
        for layer in self.layers:
            outputs.append(layer(outputs[-1], self.near, self.far))
        return outputs[1:]

    def _build(self) -> None:
        added = transferred_triples(self.triples, self.partners.cpu().numpy())
        triples = np.concatenate([self.triples, added])
        device, size = self.features.device, len(self.features)
        self.near = NormalisedAdjacency(triples[:, [0, 2]], size).to(device)
        self.consistency = RelationConsistency(triples, size, self.num_relations).to(device)


def transferred_triples(triples: IntArray, partners: IntArray) -> IntArray:
    """Triples between the counterparts of joined entities where no triple leads that way."""
    size = len(partners)
    moved = triples.copy()
    moved[:, [0, 2]] = partners[triples[:, [0, 2]]]
    moved = np.unique(moved[(moved != NOBODY).all(1)], axis=0)
    known = np.isin(
        moved[:, 0] * size + moved[:, 2], triples[:, 0] * size + triples[:, 2], kind="sort"
    )
    return moved[~known]


def _rebuild(encoder: nn.Module, _: Any) -> None:
    assert isinstance(encoder, AliNet)
    encoder._build()
