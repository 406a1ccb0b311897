"""Candidates that confident neighbours imply but the encoder does not see."""

import torch
from torch import Tensor

from emea.matching.matching import Matching
from emea.matching.pair_table import places_in_groups
from emea.rules.directed_triples import DirectedTriples
from emea.rules.evidence import log_doubt
from emea.rules.implied_pairs import implied_pairs
from emea.rules.subsumption import Subsumption
from emea.rules.tail_groups import TailGroups


class Propagation:
    """Pairs that matched neighbours imply, the best few of every entity of either side.

    Args:
        source: the source graph.
        target: the target graph.
        num_pairs: pairs kept of each entity.
        least_evidence: a single piece of evidence this weak is dropped; bounds what hubs imply.
    """

    def __init__(
        self,
        source: DirectedTriples,
        target: DirectedTriples,
        num_pairs: int = 5,
        least_evidence: float = 0.01,
    ) -> None:
        self.groups = TailGroups(source), TailGroups(target)
        self.functionality = (
            source.inverse_functionality.double(),
            target.inverse_functionality.double(),
        )
        self.num_pairs = num_pairs
        self.least_evidence = least_evidence

    def __call__(self, matching: Matching, included: Subsumption) -> tuple[Tensor, Tensor]:
        """Source and target ids of the pairs."""

        def doubt(relation: Tensor, target_relation: Tensor, prob: Tensor) -> Tensor:
            forth, back = included.of(relation, target_relation)
            of_source, of_target = self.functionality
            return log_doubt(
                forth.double(),
                back.double(),
                of_source[relation],
                of_target[target_relation],
                prob,
            )

        everyone = torch.ones_like(matching.targets, dtype=torch.bool)
        found = list(implied_pairs(*self.groups, matching, everyone, doubt, self.least_evidence))
        if not found:
            nobody = matching.targets[:0]
            return nobody, nobody
        sources, targets, doubts = (torch.cat(list(column)) for column in zip(*found, strict=True))
        kept = self._best(sources, doubts, len(matching.targets))
        kept |= self._best(targets, doubts, matching.num_target)
        return sources[kept], targets[kept]

    def _best(self, entities: Tensor, doubts: Tensor, num_entities: int) -> Tensor:
        """Which pairs are among their entity's least doubtful."""
        order = torch.argsort(doubts, stable=True)
        order = order[torch.argsort(entities[order], stable=True)]
        kept = torch.zeros(len(entities), dtype=torch.bool, device=entities.device)
        kept[order] = places_in_groups(entities[order], num_entities) < self.num_pairs
        return kept
