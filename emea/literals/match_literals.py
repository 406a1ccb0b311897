"""Matches the literals of two graphs by equal normal forms and, optionally, by similar texts."""

import logging
from dataclasses import dataclass

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.errors import DataError
from emea.literals.similar_texts import similar_texts
from emea.literals.value_nodes import ValueNodes, extended_graph, value_nodes

logger = logging.getLogger(__name__)

NO_LITERALS = (
    "{pair} has no literals on the {side} side, so there is nothing to compare. Mark "
    "attributes of tables with data.attributes, make names from IRIs with data.iri_names=true, or "
    "use literals=none. In Python, use read_graph(path, literals=True), or attributes=[...] for "
    "tables."
)


PRIOR_AGREEING, PRIOR_CHECKED = 9.0, 10.0
"""Prior votes that agree and that can be checked. We assume that 9 of 10 are right."""

LEAST_PROB = 0.5
"""Minimum estimated probability of an anchor."""


@dataclass(frozen=True)
class EqualLiterals:
    """Matches values whose normal forms are equal.

    Equal values match with probability 1. A value that many entities share identifies an entity
    less well than the functionality of its attribute suggests, so its probability is lowered
    (``ValueNodes.local_weight``). The values with the most pairs of entities are left out if all
    pairs exceed the budget.

    Args:
        reads: Whether readers keep literals, which matching needs.
        pairs_per_triple: The maximum number of pairs of entities that matched values may imply,
            per literal triple. It limits the memory.
    """

    reads: bool
    pairs_per_triple: int

    def __call__(self, pair: GraphPair) -> LiteralMatches:
        """Match the literals of a pair. Links are not used.

        Raises:
            DataError: A graph has no literals.
        """
        for side, graph in (("source", pair.source), ("target", pair.target)):
            if graph.attributes is None or not len(graph.attributes):
                raise DataError(NO_LITERALS.format(pair=pair.name, side=side))
        assert pair.source.attributes is not None and pair.target.attributes is not None
        source, target = value_nodes(pair.source.attributes), value_nodes(pair.target.attributes)
        equal = _equal(source, target)
        anchors, anchor_probs = find_anchors(source, target, equal)
        others, other_probs = self.similar(source, target, equal)
        pairs = np.concatenate([equal, others])
        probs = np.concatenate([np.ones(len(equal)), other_probs])
        kept = self._within_budget(source, target, pairs)
        pairs, probs = pairs[kept], probs[kept]
        probs = probs * np.minimum(
            source.local_weight()[pairs[:, 0]], target.local_weight()[pairs[:, 1]]
        )
        _log(source, target, equal, len(pairs), anchor_probs)
        return LiteralMatches(
            extended_graph(pair.source, source),
            extended_graph(pair.target, target),
            pairs + np.array([pair.source.num_entities, pair.target.num_entities]),
            probs,
            anchors,
            anchor_probs,
        )

    def similar(
        self, source: ValueNodes, target: ValueNodes, equal: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """Return further pairs of values and their probabilities; none in this class.

        Args:
            source: Values of the source graph.
            target: Values of the target graph.
            equal: ``[num_pairs, 2]`` values that are equal.
        """
        return equal[:0], np.zeros(0)

    def _within_budget(self, source: ValueNodes, target: ValueNodes, pairs: IntArray) -> np.ndarray:
        """Return whether to keep each pair of values. Those with the fewest entities come first."""
        implied = source.num_holders[pairs[:, 0]] * target.num_holders[pairs[:, 1]]
        budget = self.pairs_per_triple * (len(source.triples) + len(target.triples))
        ascending = np.sort(implied)
        num_kept = int(np.searchsorted(np.cumsum(ascending), budget, side="right"))
        if num_kept == len(pairs):
            return np.ones(len(pairs), dtype=bool)
        # keep or leave out values of equal size together, independent of their order
        kept: np.ndarray = implied < ascending[num_kept]
        return kept


@dataclass(frozen=True)
class SimilarLiterals(EqualLiterals):
    """Also matches similar texts, with their cosine similarity as probability.

    Args:
        reads: Whether readers keep literals, which matching needs.
        pairs_per_triple: See ``EqualLiterals``.
        least_similarity: The minimum cosine similarity of two texts that match.
        num_similar: The number of similar texts to keep for each value.
    """

    least_similarity: float
    num_similar: int

    def similar(
        self, source: ValueNodes, target: ValueNodes, equal: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """Return pairs of similar texts, among values without an equal value in the other graph."""
        free = (
            np.setdiff1d(np.arange(len(nodes.keys)), column)
            for nodes, column in zip((source, target), equal.T, strict=True)
        )
        first, second = (
            np.array([number for number in numbers if has_letters(nodes.keys[number])], dtype=int)
            for nodes, numbers in zip((source, target), free, strict=True)
        )
        rows, columns, cosines = similar_texts(
            [source.keys[number] for number in first],
            [target.keys[number] for number in second],
            self.least_similarity,
            self.num_similar,
        )
        return np.stack([first[rows], second[columns]], axis=1).astype(np.int64), cosines


def has_letters(key: str) -> bool:
    """Return whether a normal form is text. Numbers, dates and codes only match if equal."""
    return any(map(str.isalpha, key))


def _equal(source: ValueNodes, target: ValueNodes) -> IntArray:
    numbers = {key: number for number, key in enumerate(target.keys)}
    found = [(number, numbers[key]) for number, key in enumerate(source.keys) if key in numbers]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _log(
    source: ValueNodes, target: ValueNodes, equal: IntArray, num_pairs: int, probs: FloatArray
) -> None:
    logger.info(
        "Literals: %s + %s distinct values, %s equal, %s pairs of values used as evidence",
        *(f"{count:,}" for count in (len(source.keys), len(target.keys), len(equal), num_pairs)),
    )
    sure = f", estimated precision {probs.mean():.2f}" if len(probs) else ""
    logger.info("Anchors from unambiguous equal values: %s%s", f"{len(probs):,}", sure)


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
