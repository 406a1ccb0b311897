"""Finds anchors: pairs of entities that share unambiguous values, without known links."""

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.literals.value_nodes import ValueNodes

PRIOR_AGREEING, PRIOR_CHECKED = 9.0, 10.0
"""Prior votes that agree and that can be checked. We assume that 9 of 10 are right."""

LEAST_PROB = 0.5
"""Minimum estimated probability of an anchor."""


def find_anchors(
    source: ValueNodes, target: ValueNodes, pairs: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return pairs of entities that share an unambiguous value, and their estimated probability.

    A value that exactly one entity of each graph has is a vote for this pair. Its weight is the
    product of the inverse functionality of both attributes and of the share of votes of these
    attributes that agree with other votes for the same entities. A noisy-or combines the votes for
    a pair. Each entity keeps only its best pair, and none if two pairs are equally good.

    Args:
        source: Values of the source graph.
        target: Values of the target graph.
        pairs: ``[num_pairs, 2]`` value nodes that are equal.

    Returns:
        ``[num_anchors, 2]`` source and target entities, and ``[num_anchors]`` probabilities.
    """
    single = (source.num_holders[pairs[:, 0]] == 1) & (target.num_holders[pairs[:, 1]] == 1)
    first, second = (
        _most_functional(nodes, column)
        for nodes, column in zip((source, target), pairs[single].T, strict=True)
    )
    votes = np.stack([first[:, 0], second[:, 0]], axis=1)
    if not len(votes):
        return votes.reshape(-1, 2), np.zeros(0)
    worth = source.attribute_functionality[first[:, 1]]
    worth = worth * target.attribute_functionality[second[:, 1]]
    kind = first[:, 1] * len(target.attribute_functionality) + second[:, 1]
    kind = np.unique(kind, return_inverse=True)[1]
    agreement = np.full(kind.max() + 1, PRIOR_AGREEING / PRIOR_CHECKED)
    for _ in range(2):
        found, vote_of, evidence = _combined(votes, worth * agreement[kind])
        chosen = _best_of_both(found, evidence)
        agreement = _agreement(votes, kind, chosen[vote_of])
    found, _, evidence = _combined(votes, worth * agreement[kind])
    probs = -np.expm1(-evidence)
    kept = _best_of_both(found, evidence) & (probs >= LEAST_PROB)
    return found[kept], probs[kept]


def _most_functional(nodes: ValueNodes, wanted: IntArray) -> IntArray:
    """Return ``[num_wanted, 2]`` the entity with each value, and its most functional attribute."""
    share = nodes.attribute_functionality[nodes.triples[:, 1]]
    order = np.lexsort((nodes.triples[:, 1], -share, nodes.triples[:, 2]))
    held, first = np.unique(nodes.triples[order, 2], return_index=True)
    return nodes.triples[order][first[np.searchsorted(held, wanted)]][:, :2]


def _combined(votes: IntArray, prob: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the distinct pairs, the pair of each vote, and ``-log(1 - prob)`` of each pair."""
    found, vote_of = np.unique(votes, axis=0, return_inverse=True)
    weight = -np.log1p(-np.minimum(prob, 1 - 1e-9))
    index: IntArray = vote_of.reshape(-1).astype(np.int64)
    evidence = np.zeros(len(found))
    np.add.at(evidence, index, weight)
    return found, index, evidence


def _best_of_both(pairs: IntArray, evidence: FloatArray) -> np.ndarray:
    """Return whether a pair is the unique best pair of both its entities."""
    best = np.ones(len(pairs), dtype=bool)
    for entities in pairs.T:
        most = np.zeros(entities.max() + 1)
        np.maximum.at(most, entities, evidence)
        tops = np.isclose(evidence, most[entities], rtol=1e-9, atol=0)
        best &= tops & (np.bincount(entities[tops], minlength=len(most))[entities] == 1)
    return best


def _agreement(votes: IntArray, kind: IntArray, is_chosen: np.ndarray) -> FloatArray:
    """Return the share of agreeing votes of each kind, among votes that another kind can check."""
    num_kinds = kind.max() + 1
    checked = np.zeros(len(votes), dtype=bool)
    for entities in votes.T:
        seen = np.unique(entities * num_kinds + kind)
        checked |= np.bincount(seen // num_kinds)[entities] > 1
    agreeing = np.bincount(kind[checked & is_chosen], minlength=num_kinds)
    return (agreeing + PRIOR_AGREEING) / (
        np.bincount(kind[checked], minlength=num_kinds) + PRIOR_CHECKED
    )
