"""Candidates that confident neighbours imply but the encoder does not see."""

import torch
from torch import Tensor

from emea.matching.block_memory import in_smaller_blocks
from emea.matching.matching import Matching
from emea.matching.pair_table import places_in_groups
from emea.matching.similarity import Similarity
from emea.rules.directed_triples import DirectedTriples
from emea.rules.implied_pairs import ImpliedPairs, implied_pairs
from emea.rules.literal_rows import LiteralRows
from emea.rules.neighbour_join import TailGroups
from emea.rules.pair_evidence import log_doubt
from emea.rules.subsumption import Subsumption


class Propagation:
    """Pairs that matched neighbours imply, the best few of every entity of either side.

    Much evidence is exactly equal: all members of a group are implied alike. Of those among whom
    the number cuts, the most similar stay.

    Args:
        source: the source graph.
        target: the target graph.
        num_pairs: pairs kept of each entity.
        least_evidence: a single piece of evidence this weak is dropped; bounds what hubs imply.
        literals: matched values, if the graphs are extended by them.
    """

    def __init__(
        self,
        source: DirectedTriples,
        target: DirectedTriples,
        num_pairs: int = 5,
        least_evidence: float = 0.01,
        literals: LiteralRows | None = None,
    ) -> None:
        self.literals = literals
        self.groups = TailGroups(source), TailGroups(target)
        self.functionality = (
            source.inverse_functionality.double(),
            target.inverse_functionality.double(),
        )
        self.num_pairs = num_pairs
        self.least_evidence = least_evidence

    @in_smaller_blocks
    def __call__(
        self, matching: Matching, included: Subsumption, similarity: Similarity
    ) -> tuple[Tensor, Tensor]:
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

        wanted = torch.ones_like(matching.targets, dtype=torch.bool)
        if self.literals is not None:
            matching, wanted = self.literals.matching(matching), self.literals.wanted(wanted)
        blocks = implied_pairs(*self.groups, matching, wanted, doubt, self.least_evidence)
        found = [pairs.to_targets_below(similarity.num_target) for pairs in blocks]
        if not found:
            nobody = matching.targets[:0]
            return nobody, nobody
        pairs = ImpliedPairs(*(torch.cat(list(column)) for column in zip(*found, strict=True)))
        kept = self._best(pairs, pairs.sources, similarity.num_source, similarity)
        kept |= self._best(pairs, pairs.targets, similarity.num_target, similarity)
        return pairs.sources[kept], pairs.targets[kept]

    def _best(
        self, pairs: ImpliedPairs, entities: Tensor, num_entities: int, similarity: Similarity
    ) -> Tensor:
        """Which pairs are among their entity's least doubtful."""
        doubts = pairs.log_doubt
        order = torch.argsort(doubts, stable=True)
        order = order[torch.argsort(entities[order], stable=True)]
        at_cut = order[places_in_groups(entities[order], num_entities) == self.num_pairs - 1]
        last = doubts.new_ones(num_entities)  # no pair is as doubtful: where few are, all stay
        last[entities[at_cut]] = doubts[at_cut]
        kept = doubts < last[entities]
        room = self.num_pairs - torch.bincount(entities[kept], minlength=num_entities)
        tied = (doubts == last[entities]).nonzero().squeeze(1)
        scores = similarity.of_pairs(pairs.sources[tied], pairs.targets[tied])
        tied = tied[torch.argsort(scores, descending=True, stable=True)]
        tied = tied[torch.argsort(entities[tied], stable=True)]
        of_tied = entities[tied]
        kept[tied] = places_in_groups(of_tied, num_entities) < room[of_tied]
        return kept
