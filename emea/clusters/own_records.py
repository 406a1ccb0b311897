"""The entities of one graph as records, and the pairs of them that may be duplicates."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from emea.clusters.noisy_copies import with_noisy_copies
from emea.data.arrays import IntArray
from emea.data.attributes import PLAIN, AttributeTriples
from emea.data.entity_kinds import OWL, RDFS
from emea.data.graph import KnowledgeGraph
from emea.data.names import local_name
from emea.errors import DataError
from emea.literals.agreement import Agreement, Attributes
from emea.literals.decoys import best_three
from emea.literals.records import (
    MOST_HOLDERS,
    Records,
    holders,
    most_similar,
    row_cosines,
)
from emea.literals.value_nodes import extended_graph, value_nodes
from emea.rules.subsumption import TYPE_RELATIONS

MOST_SIMILAR = 12
"""Records that are compared with each record, of which one is the record itself."""

COMMON_TYPES = (f"{OWL}Thing", f"{OWL}NamedIndividual", f"{RDFS}Resource")
"""Types that entities of all kinds may have."""

FEWEST_OF_KIND = 50
"""Kinds with fewer entities are compared together: each by itself shows little."""

NO_VALUES = (
    "{name} has no values to compare. Mark attributes of a table of triples with data.attributes, "
    "or make names from IRIs with data.iri_names=true."
)


class OwnRecords(NamedTuple):
    """The values of the entities of one kind, and of noisy copies of some of them.

    Args:
        kind: The types of the entities; empty if they have none.
        entities: ``[num_real]`` the entities in the graph. Records are numbered from 0.
        records: The values. Copies have the largest ids.
        originals: ``[num_copies]`` the record of which each copy is made.
    """

    kind: str
    entities: IntArray
    records: Records
    originals: IntArray

    @property
    def num_real(self) -> int:
        """The number of entities without the copies."""
        return len(self.entities)


def own_records(graph: KnowledgeGraph, name: str) -> list[OwnRecords]:
    """Return the values of the entities of each kind, and of noisy copies of some of them.

    Attributes that number the entities are left out.

    Raises:
        DataError: The graph has no literals.
    """
    attributes = with_references(graph, name)
    kinds, names = kinds_of_entities(graph)
    found = []
    for kind, types in enumerate(names):
        entities = np.flatnonzero(kinds == kind)
        held = _held_by(attributes, entities)
        before = _records(held, len(entities))
        running = before.running_numbers()
        distinct = np.flatnonzero(places_among(first_equal(before)) == 0)
        copied, originals = with_noisy_copies(held, len(entities), distinct)
        records = _records(copied, len(entities) + len(originals))
        records.without(running)
        found.append(OwnRecords(types, entities, records, originals))
    return found


def kinds_of_entities(graph: KnowledgeGraph) -> tuple[IntArray, list[str]]:
    """Return ``[num_entities]`` the kind of each entity, and the types of each kind.

    Entities are of one kind if they share a type, also through a third one. Entities without types
    and those of rare kinds are one kind together.
    """
    num = graph.num_entities
    typed = graph.triples[is_typing(graph)]
    is_common = [graph.entity_name(one) in COMMON_TYPES for one in typed[:, 2].tolist()]
    heads, _, types = typed[~np.array(is_common, dtype=bool)].T
    # a class is a node of its own, because it may have a type, too
    edges = sp.csr_matrix(
        (np.ones(len(heads)), (heads, types + num)), shape=(2 * num, 2 * num)
    )
    parts = connected_components(edges, directed=False)[1]
    sizes = np.bincount(parts[:num])[parts[:num]]
    is_rare = (sizes < FEWEST_OF_KIND) | ~np.isin(np.arange(num), heads)
    kept, kinds = np.unique(np.where(is_rare, -1, parts[:num]), return_inverse=True)
    names = [
        " ".join(
            sorted(
                {
                    local_name(graph.entity_name(one))
                    for one in types[parts[heads] == part]
                }
            )
        )
        for part in kept.tolist()
    ]
    return kinds.reshape(-1), names


def is_typing(graph: KnowledgeGraph) -> np.ndarray:
    """Return whether each triple leads from an entity to its type."""
    names = map(graph.relation_name, range(graph.num_relations))
    is_type = np.array([name in TYPE_RELATIONS for name in names], dtype=bool)
    found: np.ndarray = is_type[graph.triples[:, 1]]
    return found


def with_references(graph: KnowledgeGraph, name: str) -> AttributeTriples:
    """Return the values of the entities; entities that they refer to are values, too.

    The value of such an entity is its label, or its own values, or its name. Blank values count as
    missing. Types are left out: only entities of one kind are compared.

    Args:
        graph: The graph.
        name: The name of its file, for the error.

    Raises:
        DataError: The graph has no literals.
    """
    literals = graph.attributes
    if literals is None or not len(literals):
        raise DataError(NO_VALUES.format(name=name))
    held: list[list[str]] = [[] for _ in range(graph.num_entities)]
    for entity, _, value in literals.triples.tolist():
        held[entity].append(literals.values[value])
    referred, places = np.unique(graph.triples[:, 2], return_inverse=True)
    texts = [
        graph.entity_label(entity)
        or " ".join(held[entity])
        or local_name(graph.entity_name(entity))
        for entity in referred.tolist()
    ]
    references = graph.triples.copy()
    references[:, 1] += len(literals.attribute_names)
    references[:, 2] = places.reshape(-1) + len(literals.values)
    relations = map(graph.relation_name, range(graph.num_relations))
    plain = np.full(len(texts), len(literals.kind_names))
    values = [*literals.values, *texts]
    triples = np.concatenate([literals.triples, references[~is_typing(graph)]])
    is_blank = np.array([not text.strip() for text in values], dtype=bool)
    return replace(
        literals,
        triples=triples[~is_blank[triples[:, 2]]],
        attribute_names=[*literals.attribute_names, *relations],
        values=values,
        kinds=np.concatenate([literals.kinds, plain]),
        kind_names=[*literals.kind_names, PLAIN],
    )


def _held_by(attributes: AttributeTriples, entities: IntArray) -> AttributeTriples:
    """Return the values of some entities, which are numbered from 0."""
    own = attributes.triples[np.isin(attributes.triples[:, 0], entities)]
    used, places = np.unique(own[:, 2], return_inverse=True)
    own[:, 0] = np.searchsorted(entities, own[:, 0])
    own[:, 2] = places.reshape(-1)
    values = [attributes.values[value] for value in used.tolist()]
    return replace(attributes, triples=own, values=values, kinds=attributes.kinds[used])


def _records(attributes: AttributeTriples, num_entities: int) -> Records:
    no_triples = np.zeros((0, 3), dtype=np.int64)
    graph = KnowledgeGraph(no_triples, num_entities, 0)
    nodes = value_nodes(attributes)
    return Records(graph, extended_graph(graph, nodes), nodes.keys)


def places_among(first: IntArray) -> IntArray:
    """Return how many smaller entities are equal to each entity.

    Args:
        first: ``[num_entities]`` the first entity that is equal.
    """
    order = np.argsort(first, kind="stable")
    ordered = first[order]
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return places


def first_equal(records: Records) -> IntArray:
    """Return ``[num_entities]`` the first entity with exactly the same values.

    Entities without values are only equal to themselves.
    """
    cells = np.stack([records.entities, records.attributes, records.values], axis=1)
    cells = cells[np.lexsort(cells.T[::-1])]
    everyone = np.arange(records.num_entities + 1)
    ends = np.searchsorted(cells[:, 0], everyone).tolist()
    content = np.ascontiguousarray(cells[:, 1:])
    seen: dict[bytes, int] = {}
    found = everyone[:-1].copy()
    for entity in range(records.num_entities):
        held = content[ends[entity] : ends[entity + 1]]
        if len(held):
            found[entity] = seen.setdefault(held.tobytes(), entity)
    return found


def possible_pairs(
    records: Records, vectors: sp.csr_matrix, wanted: np.ndarray
) -> IntArray:
    """Return ``[num_pairs, 2]`` pairs of entities to compare, in both directions, ascending.

    They have similar words, or a value that few entities have, or are both among the most similar
    entities of a third one.

    Args:
        records: The values of the entities.
        vectors: The words of the entities.
        wanted: ``[num_entities]`` whether to compare an entity.
    """
    kept = sp.diags(wanted.astype(np.float32))
    vectors = (kept @ vectors).tocsr()
    vectors.eliminate_zeros()
    held = holders(records) @ kept
    counts = np.asarray(held.sum(1)).ravel()
    is_rare = (counts > 1) & (counts * counts <= MOST_HOLDERS)
    rare = held.tocsr()[np.flatnonzero(is_rare)]
    shared = (rare.T @ rare).tocoo()
    found = np.concatenate(
        [
            most_similar(vectors, vectors, MOST_SIMILAR),
            np.stack([shared.row, shared.col], axis=1),
        ]
    )
    found = _both_ways(found, records.num_entities)
    cosines = row_cosines(vectors, vectors, found[:, 0], found[:, 1])
    best = best_three(found[:, 0], cosines, cosines)
    both = [found]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        places = np.stack([best[one], best[other]], axis=1)
        places = places[(places >= 0).all(axis=1)]
        both.append(found[places][:, :, 1])
    return _both_ways(np.concatenate(both), records.num_entities)


def _both_ways(pairs: IntArray, num_entities: int) -> IntArray:
    """Return distinct pairs of different entities in both directions, ascending."""
    pairs = pairs[pairs[:, 0] != pairs[:, 1]].astype(np.int64)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    keys = np.unique(both[:, 0] * num_entities + both[:, 1])
    return np.stack(np.divmod(keys, num_entities), axis=1)


class OwnAgreement(Agreement):
    """Compares each attribute of the entities of one graph with itself.

    Args:
        records: The values of the entities.
    """

    def __init__(self, records: Records) -> None:
        super().__init__(records, records)

    def comparable(self) -> Iterator[Attributes]:
        """Yield each attribute with itself."""
        for attribute, is_numeric in self.source.is_numeric.items():
            yield Attributes(attribute, attribute, is_numeric)
