"""Matches the literals of two graphs: equal normal forms, and on request similar texts."""

import logging
from dataclasses import dataclass

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.data.graph_pair import GraphPair
from emea.data.literal_matches import LiteralMatches
from emea.errors import DataError
from emea.literals.anchors import find_anchors
from emea.literals.similar_texts import similar_texts
from emea.literals.value_nodes import ValueNodes, extended_graph, value_nodes

logger = logging.getLogger(__name__)

NO_LITERALS = (
    "{pair} has no literals on the {side} side, so there is nothing to compare. Mark "
    "attributes of tables with data.attributes, make names from IRIs with data.iri_names=true, or "
    "use literals=none."
)


@dataclass(frozen=True)
class EqualLiterals:
    """Finds the values of two graphs that are equal.

    Equal values match with certainty. A value that many entities share identifies less than its
    attribute promises, so its probability is lowered (``ValueNodes.local_weight``), and the values
    with the most pairs of holders are left out once the budget is spent.

    Args:
        reads: Whether readers keep literals, which a matcher needs.
        pairs_per_triple: Pairs of holders that all matched values may imply, for each literal
            triple; bounds the memory.
    """

    reads: bool = True
    pairs_per_triple: int = 20

    def __call__(self, pair: GraphPair) -> LiteralMatches:
        """Match the literals of a pair; links play no part.

        Raises:
            DataError: a graph has no literals.
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
        """Further pairs of values, and their probabilities: none, if only equal values match.

        Args:
            source: Values of the source graph.
            target: Values of the target graph.
            equal: ``[num_pairs, 2]`` values that are equal.
        """
        return equal[:0], np.zeros(0)

    def _within_budget(self, source: ValueNodes, target: ValueNodes, pairs: IntArray) -> np.ndarray:
        """Whether a pair of values stays: those with the fewest pairs of holders come first."""
        implied = source.num_holders[pairs[:, 0]] * target.num_holders[pairs[:, 1]]
        budget = self.pairs_per_triple * (len(source.triples) + len(target.triples))
        ascending = np.sort(implied)
        num_kept = int(np.searchsorted(np.cumsum(ascending), budget, side="right"))
        if num_kept == len(pairs):
            return np.ones(len(pairs), dtype=bool)
        # values of equal size stay or go together, regardless of their order
        kept: np.ndarray = implied < ascending[num_kept]
        return kept


@dataclass(frozen=True)
class SimilarLiterals(EqualLiterals):
    """Also matches similar texts, with their cosine as probability.

    Args:
        reads: Whether readers keep literals, which a matcher needs.
        pairs_per_triple: See ``EqualLiterals``.
        least_similarity: Least cosine of two texts that match.
        num_similar: Most similar texts to keep for each value.
    """

    least_similarity: float = 0.6
    num_similar: int = 3

    def similar(
        self, source: ValueNodes, target: ValueNodes, equal: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """Similar texts of values that have no equal value in the other graph."""
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
    """Whether a normal form is text: numbers, dates and codes are equal or they are not."""
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
