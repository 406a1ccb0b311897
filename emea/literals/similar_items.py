"""Compares vectors and whole records of entities, as further values of the entities that match."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from emea.data.arrays import IntArray
from emea.data.formats.ontology import words
from emea.data.graph import KnowledgeGraph
from emea.data.names import local_name
from emea.data.settings import Cardinality
from emea.data.vectors import EntityVectors
from emea.literals.anchors import ValueMatches
from emea.literals.similar_texts import SimilarPairs, best_pairs
from emea.literals.value_nodes import ValueNodes, normalised_value
from emea.matching.auto_search import AutoSearch
from emea.matching.candidates import top_candidates
from emea.matching.pair_table import ScoredPairs
from emea.matching.similarity import Cosine

NUM_SIMILAR = 3

LEAST_VALUES = 2.0
"""Mean number of values of an entity from which its words say more than each value."""


def similar_vectors(
    source: EntityVectors,
    target: EntityVectors,
    cardinality: Cardinality = Cardinality.ONE_TO_ONE,
) -> SimilarPairs:
    """Return the best few pairs of each vector by cosine, with a search in bounded memory."""
    first, second = (torch.from_numpy(np.array(one.values)) for one in (source, target))
    similarity = Cosine(AutoSearch())(first, second)
    num = min(NUM_SIMILAR, len(first), len(second))
    forth = top_candidates(similarity, num).pairs()
    back = top_candidates(similarity.reversed(), num).pairs()
    both = forth.joined(ScoredPairs(back.targets, back.sources, back.scores))
    pairs = np.stack([both.sources.numpy(), both.targets.numpy()], axis=1)
    pairs, place = np.unique(pairs, axis=0, return_index=True)
    cosines = np.maximum(both.scores.double().numpy()[place], 0)
    return best_pairs(pairs[:, 0], pairs[:, 1], cosines, NUM_SIMILAR, cardinality)


def word_profiles(
    graph: KnowledgeGraph, nodes: ValueNodes, texts: list[str]
) -> dict[int, str]:
    """Return a text of all values of each entity that has values, to compare whole records.

    The values of one attribute may differ although the records mean the same: a title is shortened,
    the author is part of the description, or an attribute of one graph is a relation of the other.
    A neighbour without values is a value, too: the words of its name. The result is empty if
    entities have few values.

    Args:
        graph: The graph.
        nodes: Its values.
        texts: The text of each value, to compare.
    """
    parts: dict[int, list[str]] = {}
    for entity, value in np.unique(nodes.triples[:, [0, 2]], axis=0).tolist():
        parts.setdefault(entity, []).append(texts[value])
    names = graph.all_entity_names
    edges = np.unique(graph.triples[:, [0, 2]], axis=0).tolist()
    for head, tail in edges:
        if head in parts and tail not in parts:
            parts[head].append(normalised_value(words(local_name(names[tail]))))
    if sum(map(len, parts.values())) < LEAST_VALUES * max(1, len(parts)):
        return {}
    return {entity: " ".join(values) for entity, values in parts.items()}


ALL_WORDS = "all words"
"""Name of the attribute whose values are the words of all values of an entity."""

LEAST_LETTERS = 2
"""Shorter words are not named as words in common."""


class ComparedWords(NamedTuple):
    """The words of two entities, in their values and the names of their neighbours.

    Args:
        shared: The words that both have.
        only_source: Those that only the source entity has.
        only_target: Those that only the target has.
    """

    shared: tuple[str, ...]
    only_source: tuple[str, ...]
    only_target: tuple[str, ...]


def compared_words(
    source: KnowledgeGraph,
    source_entity: int,
    target: KnowledgeGraph,
    target_entity: int,
) -> ComparedWords:
    """Return the words that two entities share, and those that only one of them has.

    Args:
        source: The source graph, with its literals.
        source_entity: An entity of it.
        target: The target graph, with its literals.
        target_entity: An entity of it.
    """
    ours, theirs = (
        [
            word
            for word in dict.fromkeys(_words_of(graph, entity))
            if len(word) >= LEAST_LETTERS
        ]
        for graph, entity in ((source, source_entity), (target, target_entity))
    )
    return ComparedWords(
        tuple(word for word in ours if word in theirs),
        tuple(word for word in ours if word not in theirs),
        tuple(word for word in theirs if word not in ours),
    )


def _words_of(graph: KnowledgeGraph, entity: int) -> list[str]:
    """Return the words of the values of an entity, and of the names of its objects."""
    texts = []
    if (found := graph.attributes) is not None:
        values = found.triples[found.triples[:, 0] == entity, 2].tolist()
        texts += [found.values[value] for value in values]
    objects = graph.triples[graph.triples[:, 0] == entity, 2].tolist()
    texts += [
        graph.entity_label(one) or local_name(graph.entity_name(one)) for one in objects
    ]
    return [word for text in texts for word in normalised_value(words(text)).split()]


class SimilarItems(NamedTuple):
    """Items of both graphs that are compared, such as vectors of one kind.

    Args:
        kind: What the items are.
        name: What one item is called.
        entities: ``[num_items]`` the entity of each item, for both graphs.
        found: The items that match.
        texts: What each item is called, for both graphs, if items have different names.
        least_prob: The minimum estimated precision of pairs that are evidence.
    """

    kind: str
    name: str
    entities: tuple[IntArray, IntArray]
    found: SimilarPairs
    texts: tuple[Sequence[str], Sequence[str]] | None = None
    least_prob: float = 0.0


def with_items(
    source: ValueNodes,
    target: ValueNodes,
    items: SimilarItems,
    entity_kinds: tuple[IntArray | None, IntArray | None],
    kind: int,
) -> tuple[ValueNodes, ValueNodes, ValueMatches]:
    """Return the values of both graphs with a node for each item, and the nodes that match.

    Args:
        source: Values of the source graph.
        target: Values of the target graph.
        items: Items of both graphs.
        entity_kinds: The kind of each entity, if entities are matched within their kind only.
        kind: The number of this kind of items among all kinds of matches.
    """
    found = items.found
    pairs = np.stack(
        [found.rows + len(source.keys), found.columns + len(target.keys)], axis=1
    )
    kinds = np.full(len(pairs), kind)
    matches = ValueMatches(pairs, kinds, found.cosines, found.margins)
    texts = items.texts or [[items.name] * len(entities) for entities in items.entities]
    source, target = (
        _extended(nodes, entities, items.name, shown, of_side)
        for nodes, entities, shown, of_side in zip(
            (source, target), items.entities, texts, entity_kinds, strict=True
        )
    )
    return source, target, matches


def _extended(
    nodes: ValueNodes,
    entities: IntArray,
    name: str,
    texts: Sequence[str],
    entity_kinds: IntArray | None,
) -> ValueNodes:
    """Return the values with a node for each item, which only one entity has."""
    number = len(entities)
    attribute = np.full(number, len(nodes.attribute_names))
    triples = np.stack(
        [entities, attribute, len(nodes.keys) + np.arange(number)], axis=1
    )
    kinds = (
        np.zeros(number, np.int64) if entity_kinds is None else entity_kinds[entities]
    )
    return replace(
        nodes,
        kinds=np.append(nodes.kinds, kinds),
        keys=[*nodes.keys, *[""] * number],
        texts=[*nodes.texts, *texts],
        triples=np.concatenate([nodes.triples, triples]),
        attribute_names=[*nodes.attribute_names, name],
        attribute_functionality=np.append(nodes.attribute_functionality, 1.0),
        num_holders=np.append(nodes.num_holders, np.ones(number, dtype=np.int64)),
        languages=[*nodes.languages, *[""] * number],
    )
