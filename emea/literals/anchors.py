"""Anchors: pairs of entities that values which match suggest, and their estimated precision."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.data.graph_pair import GraphPair
from emea.literals.structure_support import LEAST_CHECKED, Neighbours, structure_support
from emea.literals.value_nodes import ValueNodes

PRIOR_CHECKED = 10.0
"""Votes that the prior precision of a kind counts for."""

LEAST_PROB = 0.5
"""Minimum estimated probability of an anchor."""

SURE_MARGIN = 0.3
"""Margin, relative to the cosine, from which a larger one makes a similar pair no surer."""

VOTES_PER_STRATUM, MOST_STRATA = 100, 8
"""Similar pairs are divided into strata of at least so many votes, by cosine and margin."""


class MatchKind(IntEnum):
    """How two values match. The kinds of vectors follow ``SIMILAR``."""

    EQUAL = 0
    OTHER_LANGUAGE = 1
    READING = 2
    SIMILAR = 3


KIND_TEXTS = (
    "equal",
    "equal, in different languages",
    "equal after transliteration",
    "similar",
)

PRIORS: dict[int, float] = {
    MatchKind.EQUAL: 0.9,
    MatchKind.OTHER_LANGUAGE: 0.6,
    MatchKind.READING: 0.8,
}
"""Assumed precision of anchors. Equal texts in different languages are candidates, with less
weight: many are names and loan words, and some are false friends."""

VECTOR_PRIOR = 0.6
"""Assumed precision of mutual best vectors, whose cosines depend on the model."""


class ValueMatches(NamedTuple):
    """Pairs of values that match.

    Args:
        pairs: ``[num_pairs, 2]`` value nodes.
        kinds: ``[num_pairs]`` a ``MatchKind``, or a larger number for a kind of vectors.
        cosines: ``[num_pairs]`` similarity; 1 for equal values.
        margins: ``[num_pairs]`` distance to the second best pair of the two values; 1 for equal
            values. Only pairs with a positive margin vote.
    """

    pairs: IntArray
    kinds: IntArray
    cosines: FloatArray
    margins: FloatArray

    def joined(self, other: "ValueMatches") -> "ValueMatches":
        """Return the pairs of both."""
        return ValueMatches(
            *(np.concatenate(both) for both in zip(self, other, strict=True))
        )

    def where(self, kept: np.ndarray) -> "ValueMatches":
        """Return some of the pairs."""
        return ValueMatches(*(column[kept] for column in self))

    def scores(self) -> FloatArray:
        """Return the cosine of each pair, lowered if another pair is nearly as similar."""
        share = self.margins / np.maximum(self.cosines, 1e-9)
        return np.asarray(self.cosines * np.clip(share / SURE_MARGIN, 0, 1))


class Anchors(NamedTuple):
    """The anchors of a pair of graphs.

    Args:
        pairs: ``[num_anchors, 2]`` source and target entities, each in one anchor at most.
        probs: ``[num_anchors]`` estimated probabilities.
        kinds: ``[num_anchors]`` the kind of the best vote for each anchor.
        vote_probs: ``[num_matches]`` estimated precision of each pair of values that is a vote, and
            0 for the others.
        precision: The estimated precision of the votes of each kind.
        num_confirming: How many neighbours of a right pair agree, see ``Support``.
    """

    pairs: IntArray
    probs: FloatArray
    kinds: IntArray
    vote_probs: FloatArray
    precision: dict[int, float]
    num_confirming: float = 0.0


class _Votes(NamedTuple):
    """Pairs of entities that a value suggests.

    ``strata`` numbers votes of the same kind and a similar score, and ``attributes`` the two
    attributes of a vote. ``worth`` is the product of their inverse functionality.
    """

    pairs: IntArray
    strata: IntArray
    attributes: IntArray
    worth: FloatArray


def find_anchors(
    pair: GraphPair, source: ValueNodes, target: ValueNodes, matches: ValueMatches
) -> Anchors:
    """Return pairs of entities that share an unambiguous value, and their estimated probability.

    A value that exactly one entity of each graph has is a vote for this pair. Its weight is the
    product of the inverse functionality of both attributes and of its estimated precision. This
    comes from the neighbours of the entities (``structure_support``) and from the share of votes
    of the same attributes that agree with other votes for the same entities. A noisy-or combines
    the votes for a pair. Then the neighbours of this pair raise or lower its probability. Each
    entity keeps only its best pair, and none if two pairs are equally good.
    """
    single = (source.num_holders[matches.pairs[:, 0]] == 1) & (
        target.num_holders[matches.pairs[:, 1]] == 1
    )
    is_vote = single & (matches.margins > 0)
    vote_probs = np.zeros(len(is_vote))
    votes, kind_of, prior = _votes(source, target, matches.where(is_vote))
    if not len(votes.pairs):
        return Anchors(votes.pairs, np.zeros(0), votes.strata, vote_probs, {})
    found, first_vote, vote_of = np.unique(
        votes.pairs, axis=0, return_index=True, return_inverse=True
    )
    vote_of = vote_of.reshape(-1).astype(np.int64)
    others = matches.where(single & (matches.margins <= 0)).pairs
    decoys = _decoys(found, _holders(source, target, others)[0])
    surest = np.lexsort((-prior[votes.strata], vote_of))
    first_vote = surest[np.searchsorted(vote_of[surest], np.arange(len(found)))]
    strata = votes.strata[first_vote]
    support = structure_support(
        Neighbours(pair.source, pair.target), found, strata, prior, decoys
    )
    precision, evidence = _weighed(votes, found, vote_of, support.precision)
    evidence = np.log1p(
        np.expm1(evidence) * support.likelihood_ratio
    )  # multiplies the odds
    probs = -np.expm1(-evidence)
    kept = _best_of_both(found, evidence) & (probs >= LEAST_PROB)
    vote_probs[is_vote] = precision
    votes_of_kind = np.bincount(kind_of[votes.strata])
    total = np.bincount(kind_of[votes.strata], precision)
    shares = {
        int(k): float(total[k] / votes_of_kind[k])
        for k in np.flatnonzero(votes_of_kind)
    }
    kinds = kind_of[strata[kept]]
    return Anchors(
        found[kept], probs[kept], kinds, vote_probs, shares, support.num_confirming
    )


def _holders(
    source: ValueNodes, target: ValueNodes, pairs: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the entities with the values of each pair, their attributes, and the votes' worth."""
    first, second = (
        _most_functional(nodes, column)
        for nodes, column in zip((source, target), pairs.T, strict=True)
    )
    worth = source.attribute_functionality[first[:, 1]]
    worth = worth * target.attribute_functionality[second[:, 1]]
    attributes = first[:, 1] * len(target.attribute_functionality) + second[:, 1]
    return np.stack([first[:, 0], second[:, 0]], axis=1), attributes, worth


def _most_functional(nodes: ValueNodes, wanted: IntArray) -> IntArray:
    """Return ``[num_wanted, 2]`` the entity with each value, and its most functional attribute."""
    share = nodes.attribute_functionality[nodes.triples[:, 1]]
    order = np.lexsort((nodes.triples[:, 1], -share, nodes.triples[:, 2]))
    held, first = np.unique(nodes.triples[order, 2], return_index=True)
    return nodes.triples[order][first[np.searchsorted(held, wanted)]][:, :2]


def _votes(
    source: ValueNodes, target: ValueNodes, matches: ValueMatches
) -> tuple[_Votes, IntArray, FloatArray]:
    """Return the votes, the kind of each stratum, and its assumed precision."""
    scores = matches.scores()
    strata = np.zeros(len(scores), dtype=np.int64)
    kind_of: list[int] = []
    prior: list[float] = []
    for kind in np.unique(matches.kinds).tolist():
        of_kind = np.flatnonzero(matches.kinds == kind)
        num_strata = 1
        if kind >= MatchKind.SIMILAR:
            num_strata = int(np.clip(len(of_kind) // VOTES_PER_STRATUM, 1, MOST_STRATA))
        limits = np.quantile(scores[of_kind], np.arange(1, num_strata) / num_strata)
        places = np.digitize(scores[of_kind], limits)
        for stratum in np.unique(places):
            members = of_kind[places == stratum]
            strata[members] = len(kind_of)
            kind_of.append(kind)
            assumed = PRIORS.get(kind, VECTOR_PRIOR)
            if (
                kind == MatchKind.SIMILAR
            ):  # the precision of similar texts rises with their scores
                assumed = (
                    float(np.mean(1 - (1 - scores[members]) ** 2))
                    * PRIORS[MatchKind.EQUAL]
                )
            prior.append(assumed)
    pairs, attributes, worth = _holders(source, target, matches.pairs)
    return _Votes(pairs, strata, attributes, worth), np.array(kind_of), np.array(prior)


def _decoys(found: IntArray, others: IntArray) -> IntArray:
    """Return pairs that are nearly all wrong: second best, or shuffled ones."""
    if len(others) < LEAST_CHECKED:
        moved = np.roll(found[:, 1], 1 + len(found) // 2)
        others = np.concatenate([others, np.stack([found[:, 0], moved], axis=1)])
    width = 1 + max(found[:, 1].max(), others[:, 1].max())
    is_found = np.isin(others @ np.array([width, 1]), found @ np.array([width, 1]))
    decoys: IntArray = others[~is_found]
    return decoys


def _weighed(
    votes: _Votes, found: IntArray, vote_of: IntArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the precision of each vote, and ``-log(1 - prob)`` of each pair.

    Args:
        votes: The votes.
        found: ``[num_found, 2]`` the distinct pairs.
        vote_of: ``[num_votes]`` the pair of each vote.
        precision: ``[num_strata]`` the precision of each stratum before attributes are compared.
    """
    kind = votes.attributes * len(precision) + votes.strata
    kinds, kind = np.unique(kind, return_inverse=True)
    kind = kind.reshape(-1)
    prior = precision[kinds % len(precision)]
    agreement = prior
    for _ in range(2):
        evidence = _combined(vote_of, len(found), votes.worth * agreement[kind])
        chosen = _best_of_both(found, evidence)
        agreement = _agreement(votes.pairs, kind, chosen[vote_of], prior)
    share = agreement[kind]
    return share, _combined(vote_of, len(found), votes.worth * share)


def _combined(vote_of: IntArray, num_found: int, prob: FloatArray) -> FloatArray:
    """Return ``-log(1 - prob)`` of each pair."""
    return np.asarray(
        np.bincount(vote_of, -np.log1p(-np.minimum(prob, 1 - 1e-9)), num_found)
    )


def _best_of_both(pairs: IntArray, evidence: FloatArray) -> np.ndarray:
    """Return whether a pair is the unique best pair of both its entities."""
    best = np.ones(len(pairs), dtype=bool)
    for entities in pairs.T:
        most = np.zeros(entities.max() + 1)
        np.maximum.at(most, entities, evidence)
        tops = np.isclose(evidence, most[entities], rtol=1e-9, atol=0)
        best &= tops & (np.bincount(entities[tops], minlength=len(most))[entities] == 1)
    return best


def _agreement(
    votes: IntArray, kind: IntArray, is_chosen: np.ndarray, prior: FloatArray
) -> FloatArray:
    """Return the share of agreeing votes of each kind, among votes that another kind can check."""
    num_kinds = len(prior)
    checked = np.zeros(len(votes), dtype=bool)
    for entities in votes.T:
        seen = np.unique(entities * num_kinds + kind)
        checked |= np.bincount(seen // num_kinds)[entities] > 1
    agreeing = np.bincount(kind[checked & is_chosen], minlength=num_kinds)
    num_checked = np.bincount(kind[checked], minlength=num_kinds)
    return np.asarray(
        (agreeing + PRIOR_CHECKED * prior) / (num_checked + PRIOR_CHECKED)
    )
