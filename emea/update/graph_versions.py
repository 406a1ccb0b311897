"""Two versions of a graph, and the differences between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from emea.data.arrays import NO_MATCH, IntArray
from emea.data.attributes import AttributeTriples
from emea.data.graph import KnowledgeGraph


def places_by_name(names: Sequence[str], others: Sequence[str]) -> IntArray:
    """Return the place of each name in another list, or ``NO_MATCH``, ``[len(names)]``."""
    places = {name: place for place, name in enumerate(others)}
    return np.array([places.get(name, NO_MATCH) for name in names], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class GraphVersions:
    """An earlier and a later version of one graph. Names identify entities and relations.

    Args:
        old: The earlier version.
        new: The later version.
        new_entities: ``[old.num_entities]`` id in the later version, or ``NO_MATCH``.
        old_entities: ``[new.num_entities]`` id in the earlier version, or ``NO_MATCH``.
        old_relations: ``[new.num_relations]`` id in the earlier version, or ``NO_MATCH``.
        added: ``[n, 3]`` triples that only the later version has, in its ids.
        removed: ``[n, 3]`` triples that only the earlier version has, in its ids.
    """

    old: KnowledgeGraph
    new: KnowledgeGraph
    new_entities: IntArray
    old_entities: IntArray
    old_relations: IntArray
    added: IntArray
    removed: IntArray

    @classmethod
    def of(cls, old: KnowledgeGraph, new: KnowledgeGraph) -> "GraphVersions":
        """Compare two versions."""
        names = [
            [graph.relation_name(relation) for relation in range(graph.num_relations)]
            for graph in (old, new)
        ]
        old_entities = places_by_name(new.all_entity_names, old.all_entity_names)
        new_entities = places_by_name(old.all_entity_names, new.all_entity_names)
        old_relations = places_by_name(names[1], names[0])
        added = _only_first(new, old, old_entities, old_relations)
        removed = _only_first(old, new, new_entities, places_by_name(*names))
        return cls(old, new, new_entities, old_entities, old_relations, added, removed)

    def size(self) -> dict[str, int]:
        """Return how many entities and triples are new and gone."""
        return {
            "new_entities": int((self.old_entities == NO_MATCH).sum()),
            "gone_entities": int((self.new_entities == NO_MATCH).sum()),
            "added_triples": len(self.added),
            "removed_triples": len(self.removed),
        }

    def differing_names(self) -> tuple[set[str], set[str], set[str]]:
        """Return the names of new and of gone entities, and of those with other triples."""
        sides = (
            (self.new, self.old_entities == NO_MATCH),
            (self.old, self.new_entities == NO_MATCH),
            (self.new, self.is_changed()),
        )
        new, gone, changed = (
            {graph.entity_name(entity) for entity in np.flatnonzero(chosen).tolist()}
            for graph, chosen in sides
        )
        return new, gone, changed

    def is_changed(self) -> np.ndarray:
        """Return whether an entity of the later version is new or has other triples than before."""
        changed: np.ndarray = self.old_entities == NO_MATCH
        changed[self.added[:, [0, 2]].ravel()] = True
        ends = self.new_entities[self.removed[:, [0, 2]].ravel()]
        changed[ends[ends != NO_MATCH]] = True
        return changed

    def has_new_literals(self) -> bool:
        """Return whether the kept literals of the versions differ, in value, language or type."""
        old, new = self.old.attributes, self.new.attributes
        if old is None or new is None:
            return old is not new
        numbers: dict[object, int] = {}
        entities = np.arange(self.old.num_entities)
        before = _literal_rows(old, entities, numbers)
        return not np.array_equal(before, _literal_rows(new, self.old_entities, numbers))


def _literal_rows(
    attributes: AttributeTriples, entities: IntArray, numbers: dict[object, int]
) -> IntArray:
    """Return the distinct literals of a graph as sorted rows of numbers, ``[n, 3]``.

    Args:
        attributes: The literals.
        entities: The number of each entity.
        numbers: The numbers of attributes and values so far; further ones are added.
    """

    def numbered(keys: Iterable[object]) -> IntArray:
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)

    kinds = (attributes.kind_names[kind] for kind in attributes.kinds.tolist())
    values = numbered(zip(attributes.values, kinds, strict=True))
    entity, attribute, value = attributes.triples.T
    named = numbered(attributes.attribute_names)[attribute]
    rows: IntArray = np.unique(np.stack([entities[entity], named, values[value]], axis=1), axis=0)
    return rows


def _only_first(
    one: KnowledgeGraph, other: KnowledgeGraph, entities: IntArray, relations: IntArray
) -> IntArray:
    """Return the triples of a graph that another graph lacks.

    Args:
        one: The graph.
        other: The other graph.
        entities: Ids of the first graph's entities in the other, or ``NO_MATCH``.
        relations: Ids of the first graph's relations in the other, or ``NO_MATCH``.
    """
    head, relation, tail = one.triples.T
    renamed = np.stack([entities[head], relations[relation], entities[tail]], axis=1)
    known = (renamed != NO_MATCH).all(1)
    sizes = (other.num_entities, max(1, other.num_relations), other.num_entities)
    keys = np.ravel_multi_index(other.triples.T, sizes)
    known[known] = np.isin(np.ravel_multi_index(renamed[known].T, sizes), keys)
    missing: IntArray = one.triples[~known]
    return missing


Versions = tuple[GraphVersions, GraphVersions]
"""Both versions of the source graph and of the target graph."""
