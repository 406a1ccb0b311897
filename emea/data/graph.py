"""One knowledge graph: triples over contiguous entity and relation ids."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emea.data.arrays import IntArray, frozen
from emea.data.attributes import AttributeTriples
from emea.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class KnowledgeGraph:
    """Triples of one graph, ids local to it and contiguous from zero.

    Args:
        triples: ``[num_triples, 3]`` head, relation, tail.
        num_entities: entities, those without a triple included.
        num_relations: relations.
        entity_names: a name per entity, where the data has names.
        relation_names: a name per relation, where the data has names.
        attributes: the literal triples, if they were kept; ``None``: structure only.
        labels: a label to show for each entity, empty where it has none; ``None``: no labels.
    """

    triples: IntArray
    num_entities: int
    num_relations: int
    entity_names: Sequence[str] | None = None
    relation_names: Sequence[str] | None = None
    attributes: AttributeTriples | None = None
    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        triples = frozen(self.triples, 3)
        object.__setattr__(self, "triples", triples)
        check_ids(triples[:, [0, 2]], self.num_entities, "entity")
        check_ids(triples[:, 1], self.num_relations, "relation")
        if self.attributes is not None:
            check_ids(self.attributes.triples[:, 0], self.num_entities, "entity")

    def __repr__(self) -> str:
        return (
            f"KnowledgeGraph({self.num_entities:,} entities, {self.num_relations:,} relations, "
            f"{self.num_triples:,} triples)"
        )

    @property
    def num_triples(self) -> int:
        """How many triples the graph has."""
        return len(self.triples)

    @property
    def all_entity_names(self) -> Sequence[str]:
        """The names of all entities, or their ids where the data has no names."""
        if self.entity_names is not None:
            return self.entity_names
        return [str(entity) for entity in range(self.num_entities)]

    def entity_name(self, entity: int) -> str:
        """The entity's name, or its id where the data has no names."""
        return self.entity_names[entity] if self.entity_names is not None else str(entity)

    def relation_name(self, relation: int) -> str:
        """The relation's name, or its id where the data has no names."""
        return self.relation_names[relation] if self.relation_names is not None else str(relation)

    def entity_label(self, entity: int) -> str | None:
        """The entity's label; ``None`` if it has none."""
        return (self.labels[entity] or None) if self.labels is not None else None

    def degrees(self) -> IntArray:
        """Number of triples each entity takes part in (a loop counts twice)."""
        ends = self.triples[:, [0, 2]].ravel()
        return np.bincount(ends, minlength=self.num_entities).astype(np.int64)

    def relabelled(self, new_ids: IntArray) -> "KnowledgeGraph":
        """The same graph with entity ``i`` called ``new_ids[i]`` (a permutation)."""
        triples = self.triples.copy()
        triples[:, 0] = new_ids[triples[:, 0]]
        triples[:, 2] = new_ids[triples[:, 2]]
        old_ids = np.argsort(new_ids)
        names, labels = (
            None if texts is None else [texts[old] for old in old_ids]
            for texts in (self.entity_names, self.labels)
        )
        return KnowledgeGraph(
            triples,
            self.num_entities,
            self.num_relations,
            names,
            self.relation_names,
            None if self.attributes is None else self.attributes.relabelled(new_ids),
            labels,
        )


def check_ids(ids: IntArray, size: int, what: str) -> None:
    """Refuse ids outside ``0..size-1``."""
    if ids.size and (ids.min() < 0 or ids.max() >= size):
        raise DataError(f"{what} ids must lie in 0..{size - 1}, found {ids.min()}..{ids.max()}")
