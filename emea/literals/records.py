"""The values of the entities of a graph as records, and the pairs of records worth comparing."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from emea.data.arrays import FloatArray, IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.literals.similar_texts import (
    WORDS,
    best_few,
    frequent_features,
    product_blocks,
)
from emea.literals.term_weights import term_weights
from emea.literals.value_nodes import KIND_MARKS

MOST_TARGETS, MOST_SOURCES = 10, 3
"""Target records that are compared with each source record, and source records with each target."""

LEAST_SHARED = 0.05
"""Minimum cosine of the words of two records that are compared."""

MOST_HOLDERS = 20
"""Pairs of entities that two matching values may imply; more common values suggest no pair."""

FEWEST_NUMBERS = 20
"""Running numbers are recognised from so many values."""

DENSE, DISTINCT = 1.3, 0.95
"""A column has running numbers if its range is at most ``DENSE`` times the number of its values,
and a share of at least ``DISTINCT`` of the values is distinct."""

_DIGITS = re.compile(r"\d{1,15}")


class Values(NamedTuple):
    """The values of one attribute, or of all of them, by entity.

    Args:
        values: The values, those of one entity next to each other.
        starts: ``[num_entities]`` where the values of each entity start.
        sizes: ``[num_entities]`` how many values each entity has.
    """

    values: IntArray
    starts: IntArray
    sizes: IntArray


class Records:
    """The values of the entities of one graph.

    Args:
        graph: The graph.
        extended: The graph with its values as nodes.
        texts: The text of each value, to compare.

    Attributes:
        entities, attributes, values: ``[num_cells]`` columns of the literal triples.
        left_out: Attributes that are not compared, because they only count the records.
    """

    def __init__(
        self, graph: KnowledgeGraph, extended: KnowledgeGraph, texts: Sequence[str]
    ) -> None:
        self.num_entities = graph.num_entities
        self.texts = [text.rstrip("".join(KIND_MARKS)) for text in texts]
        self.names = (extended.relation_names or [])[graph.num_relations :]
        is_cell = (extended.triples[:, 1] >= graph.num_relations) & (
            extended.triples[:, 2] < graph.num_entities + len(texts)
        )
        cells = extended.triples[is_cell] - [0, graph.num_relations, graph.num_entities]
        self.entities, self.attributes, self.values = cells.T
        self.left_out = np.zeros(0, dtype=np.int64)

    def without(self, attributes: Sequence[int]) -> None:
        """Leave attributes out of every comparison."""
        self.left_out = np.array(attributes, dtype=np.int64)
        kept = ~np.isin(self.attributes, self.left_out)
        self.entities = self.entities[kept]
        self.attributes, self.values = self.attributes[kept], self.values[kept]

    def column(self, attribute: int, most: int) -> Values:
        """Return the first few values of an attribute, by entity."""
        of_attribute = np.flatnonzero(self.attributes == attribute)
        order = of_attribute[
            np.lexsort((self.values[of_attribute], self.entities[of_attribute]))
        ]
        everyone = np.arange(self.num_entities)
        starts, ends = (
            np.searchsorted(self.entities[order], everyone, side=side)
            for side in ("left", "right")
        )
        return Values(self.values[order], starts, np.minimum(ends - starts, most))

    def running_numbers(self) -> list[int]:
        """Return the attributes that number the entities: nearly all numbers of a range, once."""
        return [
            attribute
            for attribute in np.unique(self.attributes).tolist()
            if self._is_running(attribute)
        ]

    def _is_running(self, attribute: int) -> bool:
        held = self.values[self.attributes == attribute]
        found = [_DIGITS.findall(self.texts[value]) for value in np.unique(held)]
        numbers = np.unique([int(digits[0]) for digits in found if len(digits) == 1])
        if len(numbers) < max(FEWEST_NUMBERS, DISTINCT * len(held)):
            return False
        return bool(numbers[-1] - numbers[0] + 1 <= DENSE * len(numbers))

    def words(self) -> list[str]:
        """Return the words of all values of each entity, as one text."""
        parts: list[list[str]] = [[] for _ in range(self.num_entities)]
        for entity, value in np.unique(
            np.stack([self.entities, self.values]), axis=1
        ).T.tolist():
            parts[entity].append(self.texts[value])
        return [" ".join(one) for one in parts]


def both_records(pair: GraphPair) -> tuple[Records, Records]:
    """Return the records of both graphs, without attributes that number them on both sides.

    Two tables whose rows are numbered share these numbers by chance.
    """
    found = pair.literals
    assert found is not None
    source = Records(pair.source, found.source, found.texts[0])
    target = Records(pair.target, found.target, found.texts[1])
    running = source.running_numbers(), target.running_numbers()
    if all(running):
        source.without(running[0])
        target.without(running[1])
    return source, target


class WordVectors(NamedTuple):
    """TF-IDF vectors of all words of the records of both graphs."""

    source: sp.csr_matrix
    target: sp.csr_matrix


def word_vectors(first: Sequence[str], second: Sequence[str]) -> WordVectors:
    """Return the vectors of the words of the records; they are empty if there are no words."""
    if not any(first) or not any(second):
        return WordVectors(
            sp.csr_matrix((len(first), 1)), sp.csr_matrix((len(second), 1))
        )
    return WordVectors(*term_weights(first, second, terms=WORDS))


def candidate_pairs(
    pair: GraphPair,
    source: Records,
    target: Records,
    vectors: WordVectors,
    further: IntArray,
) -> IntArray:
    """Return ``[num_pairs, 2]`` distinct pairs of records to compare, ascending.

    They have similar words, or values that match, or they are further pairs.

    Args:
        pair: The graphs, with their matched values.
        source: The records of the source graph.
        target: The records of the target graph.
        vectors: The words of the records.
        further: ``[n, 2]`` pairs that other evidence suggests.
    """
    forth = most_similar(vectors.source, vectors.target, MOST_TARGETS)
    back = most_similar(vectors.target, vectors.source, MOST_SOURCES)
    matched = _with_matched_values(pair, source, target)
    found = np.concatenate([forth, back[:, ::-1], matched, further])
    keys = np.unique(found[:, 0] * target.num_entities + found[:, 1])
    return np.stack(np.divmod(keys, target.num_entities), axis=1)


def most_similar(first: sp.csr_matrix, second: sp.csr_matrix, number: int) -> IntArray:
    """Return the most similar rows of the second matrix for each row of the first."""
    kept = sp.diags((~frequent_features(first, second)).astype(np.float32))
    index = (second @ kept).T.tocsr()
    index.eliminate_zeros()
    wanted = (first @ kept).tocsr()
    wanted.eliminate_zeros()
    found = [np.zeros((0, 2), dtype=np.int64)]
    for start, block in product_blocks(wanted, np.diff(index.indptr)):
        entries = (block @ index).tocoo()
        near = entries.data >= LEAST_SHARED
        rows, columns = (
            ids[near].astype(np.int64) for ids in (entries.row, entries.col)
        )
        best = best_few(rows, entries.data[near], number)
        found.append(np.stack([rows[best] + start, columns[best]], axis=1))
    return np.concatenate(found)


def _with_matched_values(pair: GraphPair, source: Records, target: Records) -> IntArray:
    """Return pairs of entities with matching values that few other entities have."""
    assert pair.literals is not None
    pairs = pair.literals.pairs - [source.num_entities, target.num_entities]
    # nodes behind the values are whole records, which are compared by their words
    pairs = pairs[(pairs < [len(source.texts), len(target.texts)]).all(axis=1)]
    first, second = (holders(records) for records in (source, target))
    implied = np.diff(first.indptr)[pairs[:, 0]] * np.diff(second.indptr)[pairs[:, 1]]
    rare = pairs[implied <= MOST_HOLDERS]
    shape = len(source.texts), len(target.texts)
    ones = np.ones(len(rare), dtype=np.float32)
    matched = sp.csr_matrix((ones, (rare[:, 0], rare[:, 1])), shape=shape)
    found = (first.T @ matched @ second).tocoo()
    return np.stack([found.row, found.col], axis=1).astype(np.int64)


def holders(records: Records) -> sp.csr_matrix:
    """Return ``[num_values, num_entities]`` which entities have each value."""
    ones = np.ones(len(records.values), dtype=np.float32)
    shape = len(records.texts), records.num_entities
    return sp.csr_matrix((ones, (records.values, records.entities)), shape=shape)


def row_cosines(
    first: sp.csr_matrix, second: sp.csr_matrix, rows: IntArray, others: IntArray
) -> FloatArray:
    """Return the dot products of some rows of two matrices, in blocks."""
    cosines = np.zeros(len(rows))
    for start in range(0, len(rows), 2**17):
        block = slice(start, start + 2**17)
        products = first[rows[block]].multiply(second[others[block]])
        cosines[block] = np.asarray(products.sum(1)).ravel()
    return cosines
