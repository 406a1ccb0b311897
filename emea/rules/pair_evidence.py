"""The evidence of PARIS for pairs of a table."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairTable
from emea.rules.directed_triples import DirectedTriples
from emea.rules.literal_rows import LiteralRows
from emea.rules.neighbour_join import NeighbourJoin, join_neighbours
from emea.rules.relation_overlap import RelationOverlap
from emea.rules.subsumption import (
    SMOOTHING,
    Subsumption,
    estimate_subsumption,
    matched_sizes,
)

SURE = 1 - 1e-7
"""Largest probability of one piece of evidence, so that its logarithm is finite."""


def log_doubt(
    source_in_target: Tensor,
    target_in_source: Tensor,
    source_functionality: Tensor,
    target_functionality: Tensor,
    prob: Tensor,
) -> Tensor:
    """Return the log of the two factors of r(e, n) and r'(e', n') in the noisy-or of PARIS.

    This is Eq. 13 of PARIS and Eq. 19 of EMEA: ``1 - Pr(r' in r) fun^-1(r) Pr(n = n')``, and the
    same factor with the sides exchanged.

    Args:
        source_in_target: Pr(r in r').
        target_in_source: Pr(r' in r).
        source_functionality: fun^-1(r).
        target_functionality: fun^-1(r').
        prob: Pr(n = n').
    """
    by_source = target_in_source * source_functionality * prob
    by_target = source_in_target * target_functionality * prob
    return torch.log1p(-by_source.clamp(max=SURE)) + torch.log1p(
        -by_target.clamp(max=SURE)
    )


FOUND_PRIOR, EXPECTED_PRIOR = 0.1, 0.5
"""Neighbours added to those found and to those expected, so that the share is defined."""


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """Holds the evidence for each pair of a table.

    Args:
        log_doubt: ``[num_source, width]`` log doubt that remains after all pieces of evidence.
        subsumption: Inclusions of the relations.
        features: ``[num_source, width]`` features by name. ``coverage`` is the number of matched
            neighbours divided by the expected number. In ``rare_coverage``, a neighbour with few
            neighbours counts more. ``relation_overlap`` is the share of the relations that both
            entities have.
    """

    log_doubt: Tensor
    subsumption: Subsumption
    features: dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class JoinedNeighbours:
    """Holds what all features need of the rows of a join.

    Args:
        join: Join of the pairs' neighbours.
        table: The pairs.
        carriers: Beliefs in the neighbours' candidates.
        subsumption: Inclusions of the relations.
        probs: Belief in each row's neighbours.
        included: Pr(r in r') and Pr(r' in r) of each row's relations.
        claims: Distinct pairs of place and neighbour as ``place * num_source + neighbour``.
        claim: Claim of each row.
    """

    join: NeighbourJoin
    table: PairTable
    carriers: Beliefs
    subsumption: Subsumption
    probs: Tensor
    included: tuple[Tensor, Tensor]
    claims: Tensor
    claim: Tensor

    @classmethod
    def of(
        cls,
        join: NeighbourJoin,
        table: PairTable,
        carriers: Beliefs,
        subsumption: Subsumption,
    ) -> "JoinedNeighbours":
        """Look up the rows of a join."""
        places = join.entity * table.targets.shape[1] + join.slot
        # rows of a join are in the order of entity, neighbour and slot, so equal keys are adjacent
        keys = places * table.num_source + join.neighbour
        claims, claim = torch.unique_consecutive(keys, return_inverse=True)
        probs = carriers.probs[join.neighbour, join.neighbour_slot]
        included = subsumption.of(join.relation, join.target_relation)
        return cls(join, table, carriers, subsumption, probs, included, claims, claim)


class EvidenceModel:
    """Computes PARIS's evidence (Eq. 19) for the pairs of a table from the beliefs in these pairs.

    An inclusion is a share of the triples whose two ends are matched, with ``smoothing`` added to
    their number. The released code takes shares of all triples; with few labels, few of these are
    matched.

    Args:
        source: The source graph.
        target: The target graph.
        literals: Matched values, which count as neighbours like matched entities. With ``None``
            only entities are used. The graphs must be extended by the values.
        features: Features that are computed only if they are named here: ``rare_coverage``,
            ``relation_overlap``. Other names are ignored.
        of_matched: Take inclusions from matched triples; if false, from all triples.

    Attributes:
        num_carriers: Number of a neighbour's most probable candidates that may carry evidence.
        least_belief: Pairs with a smaller belief carry no evidence.
        smoothing: Number added to the matched triples of each relation.
    """

    num_carriers = 6
    least_belief = 0.01
    smoothing = SMOOTHING

    def __init__(
        self,
        source: DirectedTriples,
        target: DirectedTriples,
        literals: LiteralRows | None = None,
        features: Sequence[str] = (),
        of_matched: bool = True,
    ) -> None:
        self.literals = literals
        self.source = source
        self.target = target
        self.of_matched = of_matched
        self.rarity: tuple[Tensor, Tensor] | None = None
        self.mean_rarity = 1.0
        if "rare_coverage" in features:
            self.rarity = rarity(source), rarity(target)
            # kept as a number, because reading it waits for a GPU
            self.mean_rarity = float(self.rarity[0].mean())
        self.overlap: RelationOverlap | None = None
        if "relation_overlap" in features:
            self.overlap = RelationOverlap(source, target)

    def __call__(self, table: PairTable, probs: Tensor) -> PairEvidence:
        """Return the evidence from pairs with these beliefs.

        Args:
            table: The pairs.
            probs: ``[num_source, width]`` belief in each pair, 0 in empty slots.
        """
        num_source = table.num_source
        if self.literals is not None:
            table, probs = self.literals.table(table, probs)
        beliefs = Beliefs(table.targets, probs)
        carriers = self.carriers(beliefs)
        join = join_neighbours(
            self.source, self.target, beliefs, neighbours=carriers, filled=table.filled
        )
        matched = matched_probs(table, probs)
        sizes = None
        if self.of_matched:
            sizes = (
                matched_sizes(self.source, matched[0]) + self.smoothing,
                matched_sizes(self.target, matched[1]) + self.smoothing,
            )
        subsumption = estimate_subsumption(
            join, beliefs, self.source, self.target, sizes=sizes, neighbours=carriers
        )
        joined = JoinedNeighbours.of(join, table, carriers, subsumption)
        pieces = log_doubt(
            *joined.included,
            self.source.inverse_functionality[join.relation],
            self.target.inverse_functionality[join.target_relation],
            joined.probs,
        )
        # the noisy-or of a pair: the sum of the log doubts of its rows
        shape = table.targets.shape
        places = join.entity * shape[1] + join.slot
        doubt = (
            pieces.new_zeros(shape.numel()).index_add_(0, places, pieces).view(shape)
        )
        features = {
            "noisy_or": -torch.expm1(doubt),
            "evidence": torch.log1p(-doubt),
            "coverage": self._coverage(joined, matched),
        }
        if self.rarity is not None:
            features["rare_coverage"] = self._coverage(joined, matched, self.rarity)
        if self.overlap is not None:
            features["relation_overlap"] = self.overlap(table, subsumption)
        features = {name: values[:num_source] for name, values in features.items()}
        return PairEvidence(doubt[:num_source], subsumption, features)

    def carriers(self, beliefs: Beliefs) -> Beliefs:
        """Return the pairs that may carry evidence, with their beliefs."""
        best = beliefs.probs.topk(min(self.num_carriers, beliefs.num_candidates), dim=1)
        targets = beliefs.targets.gather(1, best.indices)
        carries = best.values >= self.least_belief
        return Beliefs(targets, torch.where(carries, best.values, 0.0))

    def _coverage(
        self,
        joined: JoinedNeighbours,
        matched: tuple[Tensor, Tensor],
        weights: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Return the matched neighbours over the geometric mean of those both sides expect.

        A neighbour counts once, by its belief times the larger inclusion of its relations.

        Args:
            joined: Join of the pairs' neighbours.
            matched: Belief that each entity has a match.
            weights: Weight of each entity as a neighbour; ``None`` means equal weights.
        """
        join = joined.join
        # what each row r(e, n), r'(e', n') of the join adds to the matched neighbours of its pair
        worth = torch.maximum(*joined.included) * joined.probs
        mean = 1.0
        if weights is not None:
            # a pair of neighbours counts by the geometric mean of both weights. The priors below
            # are numbers of neighbours and become as large as average ones
            counterpart = joined.carriers.targets[join.neighbour, join.neighbour_slot]
            worth = (
                worth * (weights[0][join.neighbour] * weights[1][counterpart]).sqrt()
            )
            matched = matched[0] * weights[0], matched[1] * weights[1]
            mean = self.mean_rarity
        # how many matched neighbours each side expects, [num_source] and [num_target]. The keys of
        # the inclusions are source relation * num_target_relations + target relation
        included = joined.subsumption
        likelier = torch.maximum(included.source_in_target, included.target_in_source)
        of_target = included.num_target_relations
        sides = (
            (self.source, matched[0], included.keys // of_target),
            (self.target, matched[1], included.keys % of_target),
        )
        expected = [_expected_neighbours(*side, likelier) for side in sides]
        # their product for each pair of the table, [num_source, width]
        both = (expected[0].unsqueeze(1) + EXPECTED_PRIOR * mean) * (
            expected[1][joined.table.targets] + EXPECTED_PRIOR * mean
        )
        # A neighbour n can be in several rows of a pair, through several relations or counterparts.
        # It counts once, with its largest worth: first the maximum per claim (pair, n), then the
        # sum over the claims of a pair, whose place is claim // num_source
        largest = worth.new_zeros(len(joined.claims))
        largest.scatter_reduce_(0, joined.claim, worth, "amax")
        found = worth.new_zeros(both.numel())
        found.index_add_(0, joined.claims // joined.table.num_source, largest)
        share = (found.view_as(both) + FOUND_PRIOR * mean) / both.sqrt()
        return share.clamp_(max=1)


def rarity(triples: DirectedTriples) -> Tensor:
    """Return ``1 / log2(1 + number of neighbours)`` of each entity, ``[num_entities]``.

    A shared neighbour says more about a pair if it has few neighbours itself (Adamic and Adar,
    2003).
    """
    degrees = torch.bincount(triples.pair_heads, minlength=triples.num_entities)
    return 1 / torch.log2(1 + degrees.clamp(min=1).float())


def matched_probs(table: PairTable, probs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the belief that an entity has a match, ``[num_source]`` and ``[num_target]``."""
    return probs.sum(1).clamp(max=1), table.sum_by_target(probs).clamp(max=1)


def _expected_neighbours(
    triples: DirectedTriples, matched: Tensor, relations: Tensor, likelier: Tensor
) -> Tensor:
    """Return the matched neighbours, weighted by the best inclusion of their relations."""
    # the best inclusion of each relation, then of each pair (head, tail), which several relations
    # can connect, then summed over the tails of each head
    best = likelier.new_zeros(triples.num_directed)
    best.scatter_reduce_(0, relations, likelier, "amax")
    of_pair = likelier.new_zeros(len(triples.pair_heads))
    of_pair.scatter_reduce_(0, triples.pair_of_triple, best[triples.relations], "amax")
    worth = of_pair * matched[triples.pair_tails]
    return worth.new_zeros(triples.num_entities).index_add_(
        0, triples.pair_heads, worth
    )
