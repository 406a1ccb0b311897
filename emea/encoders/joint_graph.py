"""The joint graph of a pair of graphs, and the known counterparts of its entities."""

from dataclasses import dataclass

import numpy as np

from emea.data.arrays import NO_MATCH, IntArray
from emea.data.graph_pair import GraphPair
from emea.data.sorting import distinct_rows, numbered_rows, places_in_runs, run_starts


@dataclass(frozen=True, eq=False)
class JointGraph:
    """Holds both graphs of a pair in one id space: source entities first, then target entities.

    Every triple is read in both directions; the inverse of relation ``r`` is
    ``r + num_relations``. Two neighbouring entities have one edge for any number of triples. The
    relations of these triples form the edge's *relation set*. Edges with the same set share its
    entries in ``set_relations``.

    Args:
        num_source: Number of entities of the source graph.
        num_entities: Number of entities of both graphs.
        num_relations: Number of relations of both graphs, without their inverses.
        edge_rows: Entity that each edge leads to, ascending.
        edge_cols: Neighbour that each edge comes from.
        edge_sets: Relation set of each edge.
        set_rows: Set of each entry of ``set_relations``, ascending.
        set_relations: Directed relations of the sets.
    """

    num_source: int
    num_entities: int
    num_relations: int
    edge_rows: IntArray
    edge_cols: IntArray
    edge_sets: IntArray
    set_rows: IntArray
    set_relations: IntArray

    @property
    def num_target(self) -> int:
        """Number of entities of the target graph."""
        return self.num_entities - self.num_source

    @property
    def num_edges(self) -> int:
        """Number of ordered pairs of neighbouring entities."""
        return len(self.edge_rows)

    @property
    def num_sets(self) -> int:
        """Number of distinct relation sets."""
        return int(self.edge_sets.max()) + 1 if self.num_edges else 0

    def incident_relations(self, opposite: bool = False) -> tuple[IntArray, IntArray]:
        """Return the distinct (entity, directed relation) pairs, ascending.

        Args:
            opposite: Return the inverse of each relation.
        """
        edges, relations = self._edge_relations()
        if opposite:
            relations = (relations + self.num_relations) % max(
                1, 2 * self.num_relations
            )
        sizes = [self.num_entities, 2 * self.num_relations]
        rows, cols = distinct_rows([self.edge_rows[edges], relations], sizes)
        return rows, cols

    def triples(self) -> IntArray:
        """Return the distinct triples of both graphs, ``[num_triples, 3]``, by head and tail."""
        edges, relations = self._edge_relations()
        forward = relations < self.num_relations
        edges = edges[forward]
        return np.stack(
            [self.edge_rows[edges], relations[forward], self.edge_cols[edges]], axis=1
        )

    def _edge_relations(self) -> tuple[IntArray, IntArray]:
        """Return the edge and directed relation of each member of each edge's relation set."""
        starts = np.searchsorted(self.set_rows, np.arange(self.num_sets + 1))
        sizes = np.diff(starts)[self.edge_sets]
        edges = np.repeat(np.arange(self.num_edges), sizes)
        members = starts[self.edge_sets[edges]] + places_in_runs(sizes)
        return edges, self.set_relations[members]

    def closed_neighbourhoods(self) -> tuple[IntArray, IntArray]:
        """Return (entity, neighbour) pairs, ascending; every entity is its own neighbour."""
        loop = np.arange(self.num_entities)
        rows = np.concatenate([self.edge_rows, loop])
        cols = np.concatenate([self.edge_cols, loop])
        rows, cols = distinct_rows([rows, cols], [self.num_entities] * 2)
        return rows, cols


def join_graphs(pair: GraphPair) -> JointGraph:
    """Return the joint graph of a pair of graphs."""
    source = pair.source
    target = pair.target
    num_entities = source.num_entities + target.num_entities
    num_relations = source.num_relations + target.num_relations
    shift = np.array([source.num_entities, source.num_relations, source.num_entities])
    head, relation, tail = np.concatenate([source.triples, target.triples + shift]).T
    rows, cols, relations = distinct_rows(
        [
            np.concatenate([head, tail]),
            np.concatenate([tail, head]),
            np.concatenate([relation, relation + num_relations]),
        ],
        [num_entities, num_entities, 2 * num_relations],
    )
    starts = run_starts(rows, cols)
    edge_sets, set_rows, set_relations = _relation_sets(
        relations, starts, 2 * num_relations
    )
    return JointGraph(
        num_source=source.num_entities,
        num_entities=num_entities,
        num_relations=num_relations,
        edge_rows=rows[starts],
        edge_cols=cols[starts],
        edge_sets=edge_sets,
        set_rows=set_rows,
        set_relations=set_relations,
    )


def _relation_sets(
    relations: IntArray, starts: IntArray, num_directed: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Number the distinct sets of relations in the runs that begin at ``starts``."""
    if not len(relations):
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty, empty
    sizes = np.diff(np.append(starts, len(relations)))
    # Most edges have one relation, whose number identifies the set. A larger set is identified by
    # the sum of its members' random 64-bit numbers: equal sets have equal sums, and the chance of a
    # collision among a million distinct sets is below 1e-7.
    names = relations[starts].astype(np.uint64)
    several = np.flatnonzero(sizes > 1)
    if len(several):
        random = np.random.default_rng(0).integers(
            0, 2**64, num_directed, dtype=np.uint64
        )
        sums = np.add.reduceat(random[relations], starts)
        _, numbers = np.unique(sums[several], return_inverse=True)
        names[several] = num_directed + numbers.astype(np.uint64)
    num_names = int(names.max()) + 1
    _, edge_sets = numbered_rows([names.astype(np.int64)], [num_names])
    example = np.zeros(int(edge_sets.max()) + 1, dtype=np.int64)
    example[edge_sets] = np.arange(len(edge_sets))
    set_sizes = sizes[example]
    set_rows = np.repeat(np.arange(len(example)), set_sizes)
    set_relations = relations[
        np.repeat(starts[example], set_sizes) + places_in_runs(set_sizes)
    ]
    return edge_sets, set_rows, set_relations


def counterparts(links: IntArray, num_entities: int) -> IntArray:
    """Return the entity that each entity is linked to, or ``NO_MATCH``, ``[num_entities]``.

    If the labels of an E-step give an entity several links, the first one counts: given links
    precede derived ones.
    """
    partner = np.full(num_entities, NO_MATCH, dtype=np.int64)
    backwards = links[::-1]
    partner[backwards[:, 0]] = backwards[:, 1]
    partner[backwards[:, 1]] = backwards[:, 0]
    return partner
