"""One graph of a run, for telling of its entities by name."""

from functools import cached_property

from emea.data.entity_index import EntityIndex
from emea.data.graph import KnowledgeGraph
from emea.export.tab_separated import cell
from emea.pipeline.explanation import Entity, Relation
from emea.rules.directed_triples import DirectedTriples
from emea.rules.support import neighbours_of, relations_between


class GraphSide:
    """Entities, relations and neighbours of one graph, by name.

    Args:
        graph: the graph.
        triples: the same in both directions.
        what: what its entities are called in messages.
    """

    def __init__(self, graph: KnowledgeGraph, triples: DirectedTriples, what: str) -> None:
        self.graph = graph
        self.triples = triples
        self.what = what

    @cached_property
    def _index(self) -> EntityIndex:
        return EntityIndex(self.graph, self.what)

    def find(self, name: str) -> int:
        """The entity of a name (:meth:`EntityIndex.find`)."""
        return self._index.find(name)

    @property
    def by_cell(self) -> dict[str, int]:
        """The entities by what stands for them in tab-separated files."""
        return {cell(name): entity for entity, name in enumerate(self._index.names)}

    def entity(self, entity: int) -> Entity:
        """An entity with its name."""
        return Entity(entity, self.graph.entity_name(entity))

    def relation(self, directed: int) -> Relation:
        """A directed relation with its name."""
        number = self.graph.num_relations
        return Relation(self.graph.relation_name(directed % number), directed >= number)

    def neighbours(self, entity: int) -> list[int]:
        """Neighbours of an entity."""
        return neighbours_of(self.triples, entity)

    def relations(self, head: int, tail: int) -> tuple[Relation, ...]:
        """Relations from one entity to another."""
        return tuple(map(self.relation, relations_between(self.triples, head, tail)))
