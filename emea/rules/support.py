"""The evidence for one pair of entities, piece by piece."""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.neighbour_join import relation_products
from emea.rules.pair_evidence import log_doubt
from emea.rules.subsumption import Subsumption


@dataclass(frozen=True, eq=False)
class Grounds:
    """Holds the inputs from which all evidence of a run is computed.

    Args:
        source: The source graph.
        target: The target graph.
        carriers: Counterparts of the neighbours that carry evidence, with their beliefs.
        included: Inclusions of the relations.
        least_inclusion: Pairs of relations are dropped if both inclusions are below this.
        least_evidence: A piece of evidence of this probability or less is dropped.
    """

    source: DirectedTriples
    target: DirectedTriples
    carriers: Beliefs
    included: Subsumption
    least_inclusion: float = 0.0
    least_evidence: float = 0.0


class Piece(NamedTuple):
    """Holds r(e, n), r'(e', n') and their evidence for e = e' (two factors of Eq. 19).

    Args:
        neighbour: The source entity n.
        counterpart: The target entity n'.
        relation: Directed r of the source graph.
        target_relation: Directed r' of the target graph.
        source_in_target: Pr(r in r').
        target_in_source: Pr(r' in r).
        source_functionality: fun^-1(r).
        target_functionality: fun^-1(r').
        prob: Belief in n = n'.
        weight: Negative log of the doubt that remains after this piece.
    """

    neighbour: int
    counterpart: int
    relation: int
    target_relation: int
    source_in_target: float
    target_in_source: float
    source_functionality: float
    target_functionality: float
    prob: float
    weight: float


@dataclass(frozen=True)
class Support:
    """Holds all evidence for a pair.

    Args:
        pieces: Pieces of evidence, largest weight first.
    """

    pieces: tuple[Piece, ...]

    @cached_property
    def total(self) -> float:
        """Sum of the weights, which is the negative log of the remaining doubt."""
        return sum((piece.weight for piece in self.pieces), 0.0)

    @property
    def value(self) -> float:
        """The rule value of the pair, which is the noisy-or of Eq. 19."""
        return -math.expm1(-self.total)

    def shares(self) -> list[float]:
        """Return each piece's share of the evidence.

        The noisy-or is a product, so weights add up but probabilities do not. A certain piece has a
        finite weight: that of the largest probability that the rule allows.
        """
        return [piece.weight / self.total for piece in self.pieces]


def support_of(grounds: Grounds, source: int, target: int) -> Support:
    """Return the evidence for a pair, which need not be a candidate.

    The weights are computed by the rule's function in the rule's precision.
    """
    ids, prob = _matched_triples(grounds, source, target)
    relation, target_relation = ids[2:]
    forth, back = (
        part.to(prob.dtype) for part in grounds.included.of(relation, target_relation)
    )
    of_source = grounds.source.inverse_functionality[relation].to(prob.dtype)
    of_target = grounds.target.inverse_functionality[target_relation].to(prob.dtype)
    weights = -log_doubt(forth, back, of_source, of_target, prob).double()
    kept = torch.maximum(forth, back) >= grounds.least_inclusion
    kept &= -torch.expm1(-weights) > grounds.least_evidence
    columns = (*ids, forth, back, of_source, of_target, prob, weights)
    pieces = itertools.starmap(
        Piece, zip(*(one[kept].tolist() for one in columns), strict=True)
    )
    # equal weights are ordered by ids, so that the order is reproducible
    return Support(tuple(sorted(pieces, key=lambda piece: (-piece.weight, piece[:4]))))


def neighbours_of(triples: DirectedTriples, entity: int) -> list[int]:
    """Return the entities that share a triple with an entity, ascending."""
    return triples.pair_tails[_pair_range(triples, entity)].tolist()


def relations_between(triples: DirectedTriples, head: int, tail: int) -> list[int]:
    """Return the directed relations from one entity to another."""
    of_head = _pair_range(triples, head)
    tails = triples.pair_tails[of_head]
    place = of_head.start + int(torch.searchsorted(tails, tail))
    if place == of_head.stop or triples.pair_tails[place] != tail:
        return []
    first, last = triples.pair_starts[place : place + 2].tolist()
    return triples.relations[first:last].tolist()


def _pair_range(triples: DirectedTriples, entity: int) -> slice:
    ends = torch.searchsorted(triples.pair_heads, torch.tensor([entity, entity + 1]))
    return slice(*ends.tolist())


def _matched_triples(
    grounds: Grounds, source: int, target: int
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return n, n', r, r' of all r(e, n) and r'(e', n'), and the belief in n = n', above 0.

    All neighbours are looked up in one operation, because a hub has many of them.
    """
    of_source = _pair_range(grounds.source, source)
    of_target = _pair_range(grounds.target, target)
    neighbours = grounds.source.pair_tails[of_source]
    around = grounds.target.pair_tails[of_target]
    counterparts = grounds.carriers.targets[neighbours]
    probs = grounds.carriers.probs[neighbours]
    is_match = torch.isin(counterparts, around) & (probs > 0)
    row, slot = is_match.nonzero(as_tuple=True)
    place = torch.searchsorted(around, counterparts[row, slot])
    index, relation, target_relation = relation_products(
        grounds.source, grounds.target, of_source.start + row, of_target.start + place
    )
    row = row[index]
    slot = slot[index]
    ids = neighbours[row], counterparts[row, slot], relation, target_relation
    return ids, probs[row, slot]
