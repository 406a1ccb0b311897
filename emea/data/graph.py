"""A knowledge graph: triples of entity and relation ids."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from emea.data.arrays import IntArray, check_ids, frozen
from emea.data.attributes import AttributeTriples
from emea.data.vectors import EntityVectors
from emea.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class KnowledgeGraph:
    """The triples of one graph. Ids are contiguous from zero and belong to this graph only.

    Args:
        triples: ``[num_triples, 3]`` head, relation and tail.
        num_entities: The number of entities, including those without a triple.
        num_relations: The number of relations.
        entity_names: The name of each entity, if the data has names.
        relation_names: The name of each relation, if the data has names.
        attributes: The literal triples, or ``None`` if they were not kept.
        labels: A label to show for each entity, empty if an entity has none. ``None`` means that
            no entity has a label.
        kinds: ``[num_entities]`` the ``EntityKind`` of each entity, if entities are matched within
            their kind only.
        vectors: Vectors of entities, one object for each kind.
    """

    triples: IntArray
    num_entities: int
    num_relations: int
    entity_names: Sequence[str] | None = None
    relation_names: Sequence[str] | None = None
    attributes: AttributeTriples | None = None
    labels: Sequence[str] | None = None
    kinds: IntArray | None = None
    vectors: tuple[EntityVectors, ...] = ()

    def __post_init__(self) -> None:
        triples = frozen(self.triples, 3)
        object.__setattr__(self, "triples", triples)
        check_ids(triples[:, [0, 2]], self.num_entities, "entity")
        check_ids(triples[:, 1], self.num_relations, "relation")
        if self.attributes is not None:
            check_ids(self.attributes.triples[:, 0], self.num_entities, "entity")
        if self.kinds is not None:
            object.__setattr__(self, "kinds", frozen(self.kinds, 1).reshape(-1))
            if len(self.kinds) != self.num_entities:
                raise DataError(
                    f"{self.num_entities} entities have {len(self.kinds)} kinds"
                )
        for one in self.vectors:
            check_ids(one.entities, self.num_entities, "entity")

    def __repr__(self) -> str:
        return (
            f"KnowledgeGraph({self.num_entities:,} entities, {self.num_relations:,} relations, "
            f"{self.num_triples:,} triples)"
        )

    @property
    def num_triples(self) -> int:
        """The number of triples."""
        return len(self.triples)

    @property
    def all_entity_names(self) -> Sequence[str]:
        """The names of all entities, or their ids if the data has no names."""
        if self.entity_names is not None:
            return self.entity_names
        return [str(entity) for entity in range(self.num_entities)]

    def entity_name(self, entity: int) -> str:
        """Return the name of an entity, or its id if the data has no names."""
        return (
            self.entity_names[entity] if self.entity_names is not None else str(entity)
        )

    def relation_name(self, relation: int) -> str:
        """Return the name of a relation, or its id if the data has no names."""
        return (
            self.relation_names[relation]
            if self.relation_names is not None
            else str(relation)
        )

    def entity_label(self, entity: int) -> str | None:
        """Return the label of an entity, or ``None`` if it has none."""
        return (self.labels[entity] or None) if self.labels is not None else None

    def degrees(self) -> IntArray:
        """Return the number of triples of each entity. A self-loop counts twice."""
        ends = self.triples[:, [0, 2]].ravel()
        return np.bincount(ends, minlength=self.num_entities).astype(np.int64)

    def relabelled(self, new_ids: IntArray) -> "KnowledgeGraph":
        """Return the graph in which entity ``i`` has the id ``new_ids[i]``.

        Args:
            new_ids: The ids from zero, each once, and -1 for entities that are left out with their
                triples, literals and vectors.
        """
        old_ids = np.argsort(new_ids)[(new_ids < 0).sum() :].tolist()
        triples = self.triples.copy()
        triples[:, 0] = new_ids[triples[:, 0]]
        triples[:, 2] = new_ids[triples[:, 2]]
        if len(old_ids) < self.num_entities:
            triples = triples[(triples >= 0).all(1)]
        names, labels = (
            None if texts is None else [texts[old] for old in old_ids]
            for texts in (self.entity_names, self.labels)
        )
        return replace(
            self,
            triples=triples,
            num_entities=len(old_ids),
            entity_names=names,
            attributes=None
            if self.attributes is None
            else self.attributes.relabelled(new_ids),
            labels=labels,
            kinds=None if self.kinds is None else self.kinds[old_ids],
            vectors=tuple(one.relabelled(new_ids) for one in self.vectors),
        )
