"""What a graph says about an entity, in words: its names, types, attributes and neighbours."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.names import IRI_NAME, entity_title, title_of
from emea.explain.page_content import searched_attributes
from emea.rules.subsumption import TYPE_RELATIONS


class Fact(NamedTuple):
    """A statement about an entity.

    Args:
        name: The name of the attribute or relation in the graph.
        text: The value, or the title of the other entity.
        other: The other entity; ``None`` for the value of an attribute.
        is_inverse: Whether the other entity is the head of the triple.
    """

    name: str
    text: str
    other: int | None = None
    is_inverse: bool = False

    def words(self) -> str:
        """Return the statement as a short text, such as ``born in: Graz``."""
        inverse = " (of this)" if self.is_inverse else ""
        return f"{title_of(self.name)}{inverse}: {self.text}"


class Facts:
    """The entities of one graph, by name, and what the graph says about each of them.

    Args:
        graph: The graph, with its attributes if they were kept.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph
        self.names = graph.all_entity_names
        self._ids = {name: entity for entity, name in enumerate(self.names)}
        self._relations: dict[str, list[int]] = defaultdict(list)
        for relation in range(graph.num_relations):
            self._relations[graph.relation_name(relation)].append(relation)
        self._typing = [one for name in TYPE_RELATIONS for one in self._relations[name]]
        self._typed = graph.triples[np.isin(graph.triples[:, 1], self._typing)]
        self._by_head = _sorted(graph.triples, 0)
        self._by_tail = _sorted(graph.triples, 2)
        literals = graph.attributes
        self._literals = None if literals is None else _sorted(literals.triples, 0)
        self._searched = searched_attributes(literals)

    def entity(self, name: str) -> int | None:
        """Return the entity of this name, or ``None``."""
        return self._ids.get(name)

    def title(self, entity: int) -> str:
        """Return the label of an entity, or a text made from its name."""
        return entity_title(self.graph, entity)

    def all_titles(self, entity: int) -> Iterator[str]:
        """Yield the title of an entity, and its labels in all languages."""
        yield self.title(entity)
        yield from (
            one.text for one in self._attributes(entity) if one.name in self._searched
        )

    def types(self, entity: int) -> list[int]:
        """Return the entities that are the types of an entity."""
        rows = _rows(self._by_head, 0, entity)
        found: list[int] = rows[np.isin(rows[:, 1], self._typing), 2].tolist()
        return found

    def having_types(self, names: Iterable[str], needs_all: bool) -> np.ndarray:
        """Return whether each entity has one of the types of these names, or all of them."""
        number = np.zeros(self.graph.num_entities, dtype=np.int64)
        num_types = 0
        for name in set(names):
            of_type = self._typed[:, 2] == self._ids.get(name, -1)
            number[np.unique(self._typed[of_type, 0])] += 1
            num_types += 1
        found: np.ndarray = number >= (num_types if needs_all else 1)
        return found

    def about(self, entity: int, most: int | None = None) -> list[Fact]:
        """Return the first statements: attributes, then outgoing and incoming relations."""
        both = (
            *self._attributes(entity),
            *self._outgoing(entity, most),
            *self._incoming(entity, most),
        )
        return list(islice(both, most))

    def values(self, entity: int, name: str, most: int) -> list[Fact]:
        """Return the first values of an attribute or relation of an entity."""
        attributes = (one for one in self._attributes(entity) if one.name == name)
        found = list(islice(attributes, most))
        rows = _rows(self._by_head, 0, entity)
        tails = rows[np.isin(rows[:, 1], self._relations.get(name, [])), 2]
        found += [Fact(name, self.title(tail), tail) for tail in tails[:most].tolist()]
        return found[:most]

    @cached_property
    def properties(self) -> list[str]:
        """The names of all relations and attributes, the most frequent first."""
        graph = self.graph
        counts: dict[str, int] = {}
        for relation, number in enumerate(np.bincount(graph.triples[:, 1]).tolist()):
            counts[graph.relation_name(relation)] = number
        if graph.attributes is not None:
            numbers = np.bincount(graph.attributes.triples[:, 1]).tolist()
            for attribute, number in enumerate(numbers):
                name = graph.attributes.attribute_names[attribute]
                counts[name] = counts.get(name, 0) + number
        counts.pop(IRI_NAME, None)
        return sorted(counts, key=lambda name: (-counts[name], name))

    @cached_property
    def all_types(self) -> list[int]:
        """The entities that are types, the most frequent first."""
        types, numbers = np.unique(self._typed[:, 2], return_counts=True)
        found: list[int] = types[np.argsort(-numbers, kind="stable")].tolist()
        return found

    def _attributes(self, entity: int) -> Iterator[Fact]:
        literals = self.graph.attributes
        if literals is None or self._literals is None:
            return
        for _, attribute, value in _rows(self._literals, 0, entity).tolist():
            name = literals.attribute_names[attribute]
            if name != IRI_NAME:  # the title, which is not in the data
                yield Fact(name, literals.values[value])

    def _outgoing(self, entity: int, most: int | None = None) -> Iterator[Fact]:
        for _, relation, tail in _rows(self._by_head, 0, entity)[:most].tolist():
            yield Fact(self.graph.relation_name(relation), self.title(tail), tail)

    def _incoming(self, entity: int, most: int | None = None) -> Iterator[Fact]:
        for head, relation, _ in _rows(self._by_tail, 2, entity)[:most].tolist():
            name = self.graph.relation_name(relation)
            yield Fact(name, self.title(head), head, is_inverse=True)


def _sorted(triples: IntArray, column: int) -> IntArray:
    """Return the triples in the order of one column; others keep their order."""
    ordered: IntArray = triples[np.argsort(triples[:, column], kind="stable")]
    return ordered


def _rows(triples: IntArray, column: int, entity: int) -> IntArray:
    """Return the rows of an entity, among triples that are sorted by this column."""
    start, end = np.searchsorted(triples[:, column], [entity, entity + 1])
    return triples[start:end]
