"""The entities of one graph or several, with their clusters."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.names import entity_iri, entity_title


class Member(NamedTuple):
    """An entity: its graph, by name, and its id in this graph."""

    side: str
    entity: int


@dataclass(frozen=True, eq=False)
class Clustered:
    """Entities of one graph or several, numbered one graph after the other.

    Args:
        name: The name of the data.
        graphs: The graphs by name.
        pairs: ``[num_pairs, 2]`` pairs that were compared.
        probs: ``[num_pairs]`` the probability that both are the same.
        clusters: ``[num_entities]`` the smallest entity of the cluster of each entity.
        threshold: Minimum probability of a pair that speaks for a cluster.
    """

    name: str
    graphs: Mapping[str, KnowledgeGraph]
    pairs: IntArray
    probs: FloatArray
    clusters: IntArray
    threshold: float

    @cached_property
    def starts(self) -> list[int]:
        """The number of the first entity of each graph, and the number of all entities."""
        sizes = [graph.num_entities for graph in self.graphs.values()]
        return [0, *np.cumsum(sizes).tolist()]

    @cached_property
    def sides(self) -> list[str]:
        """The names of the graphs."""
        return list(self.graphs)

    @cached_property
    def rows(self) -> list[list[int]]:
        """The clusters with several entities. The first one gives the cluster its identifier.

        That is one of the first graph, with as many values and triples as possible.
        """
        sizes = np.concatenate([_num_triples(one) for one in self.graphs.values()])
        members: dict[int, list[int]] = {}
        for entity, cluster in enumerate(self.clusters.tolist()):
            members.setdefault(cluster, []).append(entity)
        found = [
            sorted(row, key=lambda one: (self.place(one), -sizes[one], self.label(one)))
            for row in members.values()
            if len(row) > 1
        ]
        return sorted(found, key=lambda row: (self.entity_name(row[0]), row[0]))

    @cached_property
    def numbers(self) -> dict[int, int]:
        """The number of the cluster of each entity that shares one, from 1."""
        return {
            entity: number for number, row in enumerate(self.rows, 1) for entity in row
        }

    def place(self, entity: int) -> int:
        """Return the place of the graph of an entity."""
        return bisect_right(self.starts, entity) - 1

    def member(self, entity: int) -> Member:
        """Return the graph of an entity, and its id in there."""
        place = self.place(entity)
        return Member(self.sides[place], entity - self.starts[place])

    def entity_name(self, entity: int) -> str:
        """Return the name of an entity."""
        side, own = self.member(entity)
        return self.graphs[side].entity_name(own)

    def label(self, entity: int) -> str:
        """Return what an entity is called."""
        side, own = self.member(entity)
        return entity_title(self.graphs[side], own)

    def iri(self, entity: int) -> str:
        """Return the IRI of an entity."""
        return entity_iri(self.entity_name(entity), self.name, self.member(entity).side)

    def joined_pairs(self, least: float) -> list[tuple[int, int, float]]:
        """Return pairs of one cluster, and other pairs from a probability, most probable first."""
        first, second = self.pairs.T
        is_joined = self.clusters[first] == self.clusters[second]
        kept = np.flatnonzero(is_joined | (self.probs >= least))
        kept = kept[np.lexsort((second[kept], first[kept], -self.probs[kept]))]
        columns = (first[kept], second[kept], self.probs[kept])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def is_joined(self, first: int, second: int) -> bool:
        """Return whether two entities are in one cluster."""
        return bool(self.clusters[first] == self.clusters[second])


def _num_triples(graph: KnowledgeGraph) -> IntArray:
    """Return how many triples and values each entity has."""
    counts = graph.degrees()
    if graph.attributes is not None:
        entities = graph.attributes.triples[:, 0]
        counts = counts + np.bincount(entities, minlength=graph.num_entities)
    return counts


def named_once(names: Sequence[str]) -> list[str]:
    """Return names of graphs, with a number where a name occurs again."""
    found: list[str] = []
    for name in names:
        number = 2
        distinct = name
        while distinct in found:
            distinct = f"{name}_{number}"
            number += 1
        found.append(distinct)
    return found
