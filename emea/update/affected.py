"""The differences between two versions of a graph, and the entities that an update recomputes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from emea.data.arrays import NO_MATCH, IntArray
from emea.data.attributes import AttributeTriples
from emea.data.graph import KnowledgeGraph
from emea.matching.beliefs import Beliefs


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
        old_entities = places_by_name(new.all_entity_names, old.all_entity_names)
        new_entities = places_by_name(old.all_entity_names, new.all_entity_names)
        names = [
            [graph.relation_name(relation) for relation in range(graph.num_relations)]
            for graph in (old, new)
        ]
        old_relations = places_by_name(names[1], names[0])
        new_relations = places_by_name(names[0], names[1])
        return cls(
            old,
            new,
            new_entities,
            old_entities,
            old_relations,
            _only_first(new, old, old_entities, old_relations),
            _only_first(old, new, new_entities, new_relations),
        )

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


FORMER_PROB = 0.1
"""Former candidates of at least this probability belong to the surroundings of an entity."""

Masks = tuple[np.ndarray, np.ndarray]
"""Whether each source entity and each target entity belongs to a set."""


@dataclass(frozen=True, eq=False)
class Affected:
    """Marks the entities of the new graphs that a change affects.

    Args:
        source: ``[num_source]`` bool.
        target: ``[num_target]`` bool.
    """

    source: np.ndarray
    target: np.ndarray

    @property
    def share(self) -> float:
        """Share of the affected entities among all entities."""
        num = len(self.source) + len(self.target)
        return float(self.source.sum() + self.target.sum()) / max(1, num)

    def joined(self, links: IntArray) -> "Affected":
        """Return these entities and those of the links."""
        source, target = self.source.copy(), self.target.copy()
        source[links[:, 0]] = True
        target[links[:, 1]] = True
        return Affected(source, target)


def affected_entities(
    versions: tuple[GraphVersions, GraphVersions],
    beliefs: Beliefs,
    pairs: IntArray,
    hops: int = 0,
) -> Affected:
    """Return the entities whose evidence a change of the graphs or labels touches.

    These are new entities, the ends of added and removed triples, the entities of changed pairs
    with their neighbours, and neighbours of all these within some hops. Probable former candidates
    of affected entities on the other side are affected, too, and so are the entities that lost a
    candidate because it no longer exists.

    Args:
        versions: Both versions of the source graph and of the target graph.
        beliefs: Beliefs of the earlier run, in the ids of the earlier versions.
        pairs: ``[n, 2]`` links and rejected pairs that the run did not have, in the later ids.
        hops: Distance up to which neighbours are affected.
    """
    changed = []
    for column, one in enumerate(versions):
        entities = np.zeros(one.new.num_entities, dtype=bool)
        entities[pairs[:, column]] = True
        entities = _with_neighbours(one.new, entities) | one.is_changed()
        for _ in range(hops):
            entities = _with_neighbours(one.new, entities)
        changed.append(entities)
    source, target = _with_former(changed, versions, beliefs)
    return Affected(source, target)


def _with_neighbours(graph: KnowledgeGraph, entities: np.ndarray) -> np.ndarray:
    """Return the entities and their neighbours."""
    heads, tails = graph.triples[:, 0], graph.triples[:, 2]
    found = entities.copy()
    found[tails[entities[heads]]] = True
    found[heads[entities[tails]]] = True
    return found


def _with_former(
    changed: Sequence[np.ndarray], versions: tuple[GraphVersions, GraphVersions], beliefs: Beliefs
) -> Masks:
    """Add the former candidates of changed entities, and entities whose candidates are gone."""
    probs, targets = beliefs.probs.numpy(), beliefs.targets.numpy()
    rows, slots = np.nonzero(probs >= FORMER_PROB)
    best = np.flatnonzero(probs.max(1, initial=0) > 0)
    rows, slots = np.append(rows, best), np.append(slots, probs[best].argmax(1))
    ends = versions[0].new_entities[rows], versions[1].new_entities[targets[rows, slots]]
    is_gone = [side == NO_MATCH for side in ends]
    is_changed = [
        gone | entities[np.where(gone, 0, side)]
        for gone, entities, side in zip(is_gone, changed, ends, strict=True)
    ]
    found = [entities.copy() for entities in changed]
    for side, other in ((0, 1), (1, 0)):
        found[side][ends[side][is_changed[other] & ~is_gone[side]]] = True
    return found[0], found[1]


def moved_beliefs(beliefs: Beliefs, versions: tuple[GraphVersions, GraphVersions]) -> Beliefs:
    """Return beliefs of an earlier run in the ids of the later graphs.

    Rows of new entities are empty. Candidates that no longer exist move behind the others and have
    probability 0.
    """
    source, target = versions
    known = source.old_entities != NO_MATCH
    old = torch.from_numpy(source.old_entities[known])
    moved = torch.from_numpy(target.new_entities)[beliefs.targets[old]]
    order = torch.argsort((moved == NO_MATCH).long(), dim=1, stable=True)
    moved, probs = moved.gather(1, order), beliefs.probs[old].gather(1, order)
    probs = torch.where(moved == NO_MATCH, 0.0, probs)
    moved = torch.where(moved == NO_MATCH, moved[:, :1].clamp(min=0), moved)
    shape = source.new.num_entities, beliefs.num_candidates
    targets, rows = torch.zeros(shape, dtype=torch.int64), torch.from_numpy(np.flatnonzero(known))
    all_probs = probs.new_zeros(shape)
    targets[rows], all_probs[rows] = moved, probs
    return Beliefs(targets, all_probs)
