"""Matches the literals of two graphs by equal normal forms and, optionally, by similar texts."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.data.attributes import AttributeTriples
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.errors import DataError
from emea.literals.anchors import (
    KIND_TEXTS,
    PRIORS,
    Anchors,
    MatchKind,
    ValueMatches,
    find_anchors,
)
from emea.literals.dictionaries import (
    AUTO,
    announce_dictionary,
    dictionary_file,
    fitting_dictionary,
    read_dictionary,
)
from emea.literals.readings import readings
from emea.literals.settings import EqualLiteralsSettings, SimilarLiteralsSettings
from emea.literals.similar_items import (
    ALL_WORDS,
    SimilarItems,
    similar_vectors,
    with_items,
    word_profiles,
)
from emea.literals.similar_texts import WORDS, similar_texts
from emea.literals.translations import translated_items
from emea.literals.value_nodes import ValueNodes, extended_graph, value_nodes

logger = logging.getLogger(__name__)

NO_LITERALS = (
    "{pair} has no literals on the {side} side, so there is nothing to compare. Mark "
    "attributes of tables with data.attributes, make names from IRIs with data.iri_names=true, or "
    "use literals=none. In Python, use read_graph(path, literals=True), or attributes=[...] for "
    "tables."
)


Texts = tuple[Sequence[str], Sequence[str]]

LEAST_SHARED, MOST_RECORDS = 0.1, 10
"""Minimum cosine of the words of two entities, and number of entities that are kept for each."""

MOST_HOMOPHONES = 3
"""Values of the target graph with the same reading that are kept for a value."""


@dataclass(frozen=True)
class EqualLiterals:
    """Matches values whose normal forms are equal.

    Equal values match with probability 1, or with the estimated precision of their kind if they
    are in different languages or equal only after transliteration. A value that many entities
    share identifies an entity less well than the functionality of its attribute suggests, so its
    probability is lowered (``ValueNodes.local_weight``). The values with the most pairs of
    entities are left out if all pairs exceed the budget.

    Args:
        reads: Whether readers keep literals, which matching needs.
        pairs_per_triple: The maximum number of pairs of entities that matched values may imply,
            per literal triple. It limits the memory.
        transliterate: When texts are compared in Latin letters: ``auto``, ``always`` or ``never``.
        dictionary: A dictionary, whose translations are further values, see ``read_dictionary``.
        negative: Whether different values of an attribute are evidence against a pair.
    """

    reads: bool = EqualLiteralsSettings.reads
    pairs_per_triple: int = EqualLiteralsSettings.pairs_per_triple
    transliterate: str = EqualLiteralsSettings.transliterate
    dictionary: str | None = EqualLiteralsSettings.dictionary
    negative: bool = EqualLiteralsSettings.negative

    def __call__(self, pair: GraphPair) -> LiteralMatches:
        """Match the literals of a pair. Links are not used.

        Raises:
            ConfigError: The dictionary is missing.
            DataError: A graph has no literals and no vectors.
        """
        if self.dictionary not in (None, AUTO):
            dictionary_file(self.dictionary)
        kinds = pair.matched_kinds or (None, None)
        source, target = (
            value_nodes(_attributes(graph, pair.name, side), of_side)
            for graph, side, of_side in zip(
                (pair.source, pair.target), ("source", "target"), kinds, strict=True
            )
        )
        matches = _equal(source, target)
        read = readings(source.keys, target.keys, self.transliterate)
        if read is not None:
            matches = matches.joined(_equal_readings(source, target, matches, read))
        texts = read or (source.keys, target.keys)
        same = matches.pairs
        matches = matches.joined(self.similar(source, target, matches, texts))
        names = list(KIND_TEXTS)
        least_probs: dict[int, float] = {}
        for items in self.items(pair, source, target, texts):
            source, target, similar = with_items(
                source, target, items, kinds, len(names)
            )
            matches = matches.joined(similar)
            least_probs[len(names)] = items.least_prob
            names.append(items.kind)
        matches = matches.where(
            source.kinds[matches.pairs[:, 0]] == target.kinds[matches.pairs[:, 1]]
        )
        anchors = find_anchors(pair, source, target, matches)
        probs = _without_unlikely(self._probs(matches, anchors), matches, least_probs)
        kept = probs > 0
        kept[kept] &= self._within_budget(source, target, matches.pairs[kept])
        matches = matches.where(kept)
        probs = probs[kept] * _local_weights(source, target, matches)
        shift = np.array([pair.source.num_entities, pair.target.num_entities])
        found = LiteralMatches(
            extended_graph(pair.source, source),
            extended_graph(pair.target, target),
            matches.pairs + shift,
            probs,
            anchors.pairs,
            anchors.probs,
            [names[kind] for kind in anchors.kinds.tolist()],
            anchors.num_confirming,
            same + shift,
            self.negative,
            texts,
        )
        _log(source, target, matches, found.anchor_kinds)
        return found

    def similar(
        self,
        source: ValueNodes,
        target: ValueNodes,
        matches: ValueMatches,
        texts: Texts,
    ) -> ValueMatches:
        """Return further pairs of values; none in this class.

        Args:
            source: Values of the source graph.
            target: Values of the target graph.
            matches: Values that are equal.
            texts: The text of each value of both graphs, to compare.
        """
        return matches.where(np.zeros(len(matches.kinds), dtype=bool))

    def items(
        self, pair: GraphPair, source: ValueNodes, target: ValueNodes, texts: Texts
    ) -> Iterator[SimilarItems]:
        """Yield translations, vectors, and other descriptions of entities, that match."""
        announce_dictionary(self.dictionary, self.transliterate, pair)
        name = fitting_dictionary(self.dictionary, self.transliterate, pair)
        if name is not None:
            words = read_dictionary(name)
            translated = translated_items(
                source, target, texts, words, pair.cardinality
            )
            if translated is not None:
                yield translated
        for both in zip(pair.source.vectors, pair.target.vectors, strict=True):
            name = both[0].name
            entities = (both[0].entities, both[1].entities)
            found = similar_vectors(*both, pair.cardinality)
            yield SimilarItems(
                f"vectors of {name}", f"vector of {name}", entities, found
            )

    def _probs(self, matches: ValueMatches, anchors: Anchors) -> FloatArray:
        """Return the probability that two values mean the same; 0 if they are not evidence."""
        probs = matches.cosines.copy()
        for kind in (MatchKind.OTHER_LANGUAGE, MatchKind.READING):
            probs[matches.kinds == kind] = anchors.precision.get(kind, PRIORS[kind])
        is_vector = matches.kinds > MatchKind.SIMILAR
        return np.where(is_vector, anchors.vote_probs, probs)

    def _within_budget(
        self, source: ValueNodes, target: ValueNodes, pairs: IntArray
    ) -> np.ndarray:
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
        pairs_per_triple, transliterate, dictionary, negative: See ``EqualLiterals``.
        least_similarity: The minimum cosine similarity of two texts that match.
        anchor_similarity: The minimum cosine similarity of two texts that make an anchor.
        num_similar: The number of similar texts to keep for each value.
    """

    dictionary: str | None = SimilarLiteralsSettings.dictionary
    least_similarity: float = SimilarLiteralsSettings.least_similarity
    anchor_similarity: float = SimilarLiteralsSettings.anchor_similarity
    num_similar: int = SimilarLiteralsSettings.num_similar

    def similar(
        self,
        source: ValueNodes,
        target: ValueNodes,
        matches: ValueMatches,
        texts: Texts,
    ) -> ValueMatches:
        """Return pairs of similar texts, among values without an equal value in the other graph."""
        first, second = _unmatched_texts(source, target, matches)
        found = similar_texts(
            [texts[0][number] for number in first],
            [texts[1][number] for number in second],
            least=min(self.least_similarity, self.anchor_similarity),
            num_similar=self.num_similar,
        )
        pairs = np.stack([first[found.rows], second[found.columns]], axis=1).astype(
            np.int64
        )
        kinds = np.full(len(pairs), int(MatchKind.SIMILAR))
        return ValueMatches(pairs, kinds, found.cosines, found.margins)

    def items(
        self, pair: GraphPair, source: ValueNodes, target: ValueNodes, texts: Texts
    ) -> Iterator[SimilarItems]:
        """Yield vectors and word profiles."""
        yield from super().items(pair, source, target, texts)
        first, second = (
            word_profiles(graph, nodes, list(of_side))
            for graph, nodes, of_side in zip(
                (pair.source, pair.target), (source, target), texts, strict=True
            )
        )
        if first and second:
            records = list(first.values()), list(second.values())
            found = similar_texts(
                *records,
                least=LEAST_SHARED,
                num_similar=MOST_RECORDS,
                features=WORDS,
                cardinality=pair.cardinality,
            )
            entities = np.array(list(first)), np.array(list(second))
            yield SimilarItems("similar in all words", ALL_WORDS, entities, found)

    def _probs(self, matches: ValueMatches, anchors: Anchors) -> FloatArray:
        probs = super()._probs(matches, anchors)
        is_weak = (matches.kinds == MatchKind.SIMILAR) & (
            matches.cosines < self.least_similarity
        )
        return np.where(is_weak, 0.0, probs)


def _unmatched_texts(
    source: ValueNodes, target: ValueNodes, matches: ValueMatches
) -> tuple[IntArray, IntArray]:
    """Return the texts without an equal value in the other graph.

    Numbers, dates and codes are not texts: they only match if they are equal.
    """
    found = []
    for nodes, column in zip((source, target), matches.pairs.T, strict=True):
        free = np.setdiff1d(np.arange(len(nodes.keys)), column)
        texts = [number for number in free if any(map(str.isalpha, nodes.keys[number]))]
        found.append(np.array(texts, dtype=np.int64))
    return found[0], found[1]


def _local_weights(
    source: ValueNodes, target: ValueNodes, matches: ValueMatches
) -> FloatArray:
    """Return the smaller weight of the two values of each match."""
    return np.minimum(
        source.local_weight()[matches.pairs[:, 0]],
        target.local_weight()[matches.pairs[:, 1]],
    )


def _without_unlikely(
    probs: FloatArray, matches: ValueMatches, least_probs: Mapping[int, float]
) -> FloatArray:
    """Return the probabilities, 0 for kinds of matches that are less likely than they must be."""
    for kind, least in least_probs.items():
        probs[(matches.kinds == kind) & (probs < least)] = 0
    return probs


def _equal(source: ValueNodes, target: ValueNodes) -> ValueMatches:
    numbers = {key: number for number, key in enumerate(target.keys)}
    found = [
        (number, numbers[key])
        for number, key in enumerate(source.keys)
        if key in numbers
    ]
    kinds = [
        MatchKind.OTHER_LANGUAGE
        if source.languages[first]
        and target.languages[second] not in ("", source.languages[first])
        else MatchKind.EQUAL
        for first, second in found
    ]
    return _certain(found, kinds)


def _equal_readings(
    source: ValueNodes, target: ValueNodes, equal: ValueMatches, texts: Texts
) -> ValueMatches:
    """Return pairs of values that are equal after transliteration, and not before."""
    first, second = _unmatched_texts(source, target, equal)
    numbers: dict[str, list[int]] = {}
    for number in second.tolist():
        numbers.setdefault(texts[1][number], []).append(number)
    found = [
        (number, other)
        for number in first.tolist()
        if texts[0][number]
        for other in numbers.get(texts[0][number], ())[:MOST_HOMOPHONES]
    ]
    return _certain(found, [MatchKind.READING] * len(found))


def _certain(found: Sequence[tuple[int, int]], kinds: Sequence[int]) -> ValueMatches:
    """Return equal pairs; one of several pairs of a value has no margin to the others."""
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    sizes = [np.bincount(column)[column] for column in pairs.T]
    margins = (np.maximum(*sizes) == 1).astype(float)
    return ValueMatches(
        pairs, np.array(kinds, dtype=np.int64), np.ones(len(pairs)), margins
    )


def _attributes(graph: KnowledgeGraph, pair: str, side: str) -> AttributeTriples:
    """Return the literals of a graph, which may have none if it has vectors."""
    if graph.attributes is not None and len(graph.attributes):
        return graph.attributes
    if not graph.vectors:
        raise DataError(NO_LITERALS.format(pair=pair, side=side))
    return AttributeTriples(
        np.zeros((0, 3), dtype=np.int64), [], [], np.zeros(0, dtype=np.int64)
    )


def _log(
    source: ValueNodes,
    target: ValueNodes,
    matches: ValueMatches,
    by_kind: Mapping[str, tuple[int, float]],
) -> None:
    num_equal = int((matches.kinds < MatchKind.SIMILAR).sum())
    counts = (len(source.keys), len(target.keys), num_equal, len(matches.kinds))
    logger.info(
        "Literals: %s + %s distinct values, %s equal, %s pairs of values used as evidence",
        *(f"{count:,}" for count in counts),
    )
    anchors = [
        f"{number:,} {kind} (estimated precision {prob:.2f})"
        for kind, (number, prob) in by_kind.items()
    ]
    logger.info("Anchors from unambiguous values: %s", ", ".join(anchors) or "none")
