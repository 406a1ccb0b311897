"""Pairs of graphs with embeddings that know something of their links."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.em.match_model import MatchModel, OneToOneModel
from emea.em.propagation import Propagation
from emea.em.settings import TwoWaySettings
from emea.em.two_way import TwoWay, TwoWayBeliefs
from emea.matching.csls import CSLS
from emea.matching.similarity import Similarity
from emea.rules.directed_triples import DirectedTriples
from emea.rules.pair_evidence import EvidenceModel

from ..baselines.random_pairs import overlapping_pair
from ..matching.random_tables import pairs_of

Beliefs = dict[tuple[int, int], float]


@dataclass(frozen=True)
class Aligned:
    """A pair of graphs, embeddings of both, and which links are labels and which are held out."""

    pair: GraphPair
    embeddings: tuple[Tensor, Tensor]
    labels: Tensor
    links: Tensor

    @property
    def similarity(self) -> Similarity:
        return CSLS(k=3)(*self.embeddings)

    def evidence(self, **options: float) -> EvidenceModel:
        source, target = (
            DirectedTriples(self.pair.source),
            DirectedTriples(self.pair.target),
        )
        return EvidenceModel(source, target, **options)  # type: ignore[arg-type]

    def two_way(
        self, num_pairs: int = 99, num_candidates: int = 3, **options: Any
    ) -> TwoWay:
        evidence, settings = self.evidence(), TwoWaySettings(**options)
        propagation = Propagation(evidence.source, evidence.target, num_pairs)
        model = OneToOneModel(settings) if settings.one_to_one else MatchModel(settings)
        return TwoWay(evidence, model, propagation, settings, num_candidates)

    def settled(self, **options: Any) -> TwoWayBeliefs:
        return self.two_way(**options)(self.similarity, self.labels, self.links)

    def relabelled(self, source_ids: np.ndarray, target_ids: np.ndarray) -> "Aligned":
        moved = []
        for rows, ids in zip(self.embeddings, (source_ids, target_ids), strict=True):
            renamed = torch.empty_like(rows)
            renamed[torch.from_numpy(ids)] = rows
            moved.append(renamed)
        links = []
        for given in (self.labels, self.links):
            new = np.stack([source_ids[given[:, 0]], target_ids[given[:, 1]]], axis=1)
            links.append(torch.from_numpy(new))
        pair = self.pair.relabelled(source_ids, target_ids)
        return Aligned(pair, (moved[0], moved[1]), links[0], links[1])


def aligned(
    seed: int,
    num_entities: int = 20,
    noise: float = 1.0,
    num_labels: int = 4,
    num_links: int = 5,
) -> Aligned:
    """An overlapping pair whose linked entities look more or less alike, in double precision."""
    pair = overlapping_pair(seed, num_entities)
    generator = torch.Generator().manual_seed(seed)
    shape = (num_entities, 8)
    drawn = [
        torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3)
    ]
    target = torch.empty_like(drawn[0])
    target[torch.from_numpy(pair.links[:, 1].copy())] = drawn[0] + noise * drawn[1]
    links = torch.from_numpy(pair.links.copy())
    links = links[torch.randperm(len(links), generator=generator)]
    held_out = links[num_labels : num_labels + num_links]
    return Aligned(pair, (drawn[0], target), links[:num_labels], held_out)


def as_dict(settled: TwoWayBeliefs) -> Beliefs:
    """Belief of each pair of the table."""
    places = pairs_of(settled.table)
    return {pair: float(settled.belief[place].exp()) for pair, place in places.items()}


ALL_OFF: dict[str, Any] = {
    "both_directions": False,
    "sweeps": 1,
    "propagation": 0,
    "features": ["noisy_or"],
    "unmatched": False,
    "matched_inclusions": False,
    "mutual_labels": False,
    "weighted_labels": False,
    "fused_answer": False,
}
"""What switches each part of the two-way step off."""
