"""Estimates from the neighbours how many pairs of entities are right, without any link.

If ``(a, b)`` is right, many neighbours of ``a`` have a counterpart among the neighbours of ``b``.
If it is wrong, few have. So the pairs of one kind are a mixture of right pairs, whose neighbours
agree as often as those of the kind with the most agreement, and of wrong pairs, whose neighbours
agree as often as those of decoys. The share of right pairs that fits best is the precision.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from emea.data.arrays import FloatArray, IntArray
from emea.data.graph import KnowledgeGraph

MOST_NEIGHBOURS = 100
"""Neighbours with more neighbours than this are ignored: they agree for wrong pairs, too."""

LEAST_CHECKED = 20
"""Pairs with compared neighbours that a kind needs to be the example of right pairs."""

LEAST_LIFT = 0.1
"""Minimum difference of the agreement of right pairs and decoys, or neighbours say nothing."""

NUM_COUNTS, NUM_SHARES = 4, 3
NUM_LEVELS = NUM_COUNTS * NUM_SHARES
"""Levels of agreement: 0, 1, 2 or more neighbours, of which none, few or at least half agree."""

PRIOR_WEIGHT, SURE_PRIOR = 10.0, 0.7
"""Number of pairs that a prior precision counts for, and the prior from which it is kept although
the neighbours of all pairs disagree."""

ROUNDS = 50


class Support(NamedTuple):
    """What the neighbours say.

    Args:
        precision: ``[num_kinds]`` estimated precision of each kind.
        likelihood_ratio: ``[num_pairs]`` how much more probable the agreement of a pair's
            neighbours is if the pair is right.
        num_confirming: Neighbours of a right pair that would agree, on average, if the
            counterparts of all entities were known; 0 if neighbours say nothing.
    """

    precision: FloatArray
    likelihood_ratio: FloatArray
    num_confirming: float = 0.0


class Neighbours:
    """The neighbours of all entities of two graphs, without hubs."""

    def __init__(self, source: KnowledgeGraph, target: KnowledgeGraph) -> None:
        self.source, self.target = (_adjacency(graph) for graph in (source, target))

    def counts(self, pairs: IntArray) -> IntArray:
        """Return the number of neighbours of each pair, the smaller of its two entities."""
        sizes = [np.diff(graph.indptr) for graph in (self.source, self.target)]
        least: IntArray = np.minimum(sizes[0][pairs[:, 0]], sizes[1][pairs[:, 1]])
        return least

    def agreement(
        self, pairs: IntArray, anchors: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return how many neighbours of each pair can be compared, and how many of them agree.

        Args:
            pairs: ``[num_pairs, 2]`` pairs of entities.
            anchors: ``[num_anchors, 2]`` pairs that count as counterparts.
        """
        shape = self.source.shape[0], self.target.shape[0]
        ones = np.ones(len(anchors), dtype=np.float32)
        # a matrix that maps each source entity to its anchored counterparts
        linked = sp.csr_matrix((ones, (anchors[:, 0], anchors[:, 1])), shape=shape)
        # one row of neighbours for each entity of a pair
        first = self.source[pairs[:, 0]]
        second = self.target[pairs[:, 1]]
        # source neighbours whose counterpart is a neighbour of the target entity
        agreeing = (first @ linked).multiply(second).sum(1)
        # neighbours that have an anchor at all; only these can agree. A pair can compare as many as
        # its side with fewer of them
        known = [
            rows @ np.bincount(column, minlength=rows.shape[1]).clip(max=1)
            for rows, column in zip((first, second), anchors.T, strict=True)
        ]
        counts = np.minimum(*known).astype(np.int64)
        return counts, np.minimum(np.asarray(agreeing).ravel().astype(np.int64), counts)


def _adjacency(graph: KnowledgeGraph) -> sp.csr_matrix:
    heads = graph.triples[:, 0]
    tails = graph.triples[:, 2]
    ends = np.concatenate([heads, tails]), np.concatenate([tails, heads])
    shape = graph.num_entities, graph.num_entities
    matrix = sp.csr_matrix((np.ones(len(ends[0]), dtype=np.float32), ends), shape=shape)
    # several triples between two entities are one neighbour, and loops are none
    matrix.data[:] = 1
    matrix.setdiag(0)
    # entities with very many neighbours say little about a pair
    usable = (np.diff(matrix.indptr) <= MOST_NEIGHBOURS).astype(np.float32)
    matrix = (matrix @ sp.diags(usable)).tocsr()
    matrix.eliminate_zeros()
    return matrix


def structure_support(
    neighbours: Neighbours,
    pairs: IntArray,
    kinds: IntArray,
    prior: FloatArray,
    decoys: IntArray,
) -> Support:
    """Estimate the precision of each kind of pairs.

    Args:
        neighbours: The neighbours of the entities.
        pairs: ``[num_pairs, 2]`` pairs of entities.
        kinds: ``[num_pairs]`` the kind of each pair.
        prior: ``[num_kinds]`` precision that is assumed without neighbours.
        decoys: ``[num_decoys, 2]`` pairs that are nearly all wrong.
    """
    support = Support(prior, np.ones(len(pairs)))
    anchors = pairs
    for _ in range(2):
        found = _estimate(
            neighbours, pairs, kinds=kinds, prior=prior, decoys=decoys, anchors=anchors
        )
        if found is None:
            return support
        support = found
        weight = support.precision[kinds] * support.likelihood_ratio
        anchors = pairs[weight >= 1 - support.precision[kinds]]
    return support


def _estimate(
    neighbours: Neighbours,
    pairs: IntArray,
    *,
    kinds: IntArray,
    prior: FloatArray,
    decoys: IntArray,
    anchors: IntArray,
) -> Support | None:
    """Return one estimate, or ``None`` if neighbours do not tell right pairs from wrong ones."""
    counts, agreeing = neighbours.agreement(pairs, anchors)
    checked = counts > 0
    num_checked = np.bincount(kinds[checked], minlength=len(prior))
    share = np.bincount(kinds, agreeing, len(prior)) / np.maximum(
        np.bincount(kinds, counts, len(prior)), 1
    )
    enough = num_checked >= LEAST_CHECKED
    decoy_counts, decoy_agreeing = neighbours.agreement(decoys, anchors)
    chance = decoy_agreeing.sum() / max(1, decoy_counts.sum())
    if not enough.any():
        return None
    if (
        share[enough].max() < chance + LEAST_LIFT
    ):  # neighbours disagree; names may still be right
        doubted = np.where(
            prior < SURE_PRIOR, PRIOR_WEIGHT / np.maximum(num_checked, 1), 1.0
        )
        return Support(prior * np.where(enough, doubted, 1.0), np.ones(len(pairs)))
    example = kinds == np.flatnonzero(enough)[share[enough].argmax()]
    levels = _levels(counts, agreeing)
    right = _distribution(levels[example])
    wrong = _distribution(_levels(decoy_counts, decoy_agreeing))
    ratio = np.where(checked, right[levels] / wrong[levels], 1.0)
    precision = prior
    for _ in range(ROUNDS):
        odds = precision[kinds] * ratio
        is_right = odds / (odds + 1 - precision[kinds])
        total = np.bincount(kinds[checked], is_right[checked], len(prior))
        precision = (total + PRIOR_WEIGHT * prior) / (num_checked + PRIOR_WEIGHT)
    of_example = agreeing[example].sum() / counts[example].sum()
    return Support(
        precision, ratio, float(of_example * neighbours.counts(pairs).mean())
    )


def _levels(counts: IntArray, agreeing: IntArray) -> IntArray:
    """Return the level of agreement of each pair."""
    share = np.where(agreeing == 0, 0, np.where(2 * agreeing < counts, 1, 2))
    levels: IntArray = np.minimum(counts, NUM_COUNTS - 1) * NUM_SHARES + share
    return levels


def _distribution(levels: IntArray) -> FloatArray:
    """Return the probability of each level among pairs with the same number of neighbours."""
    counts = (
        np.bincount(levels, minlength=NUM_LEVELS).reshape(NUM_COUNTS, NUM_SHARES) + 0.5
    )
    shares: FloatArray = (counts / counts.sum(1, keepdims=True)).ravel()
    return shares
