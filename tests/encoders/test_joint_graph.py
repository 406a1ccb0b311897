"""The joint structure against loops over dicts and sets."""

from collections import defaultdict
from collections.abc import Callable

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.encoders.joint_graph import JointGraph, counterparts, join_graphs

Relations = dict[tuple[int, int], set[int]]


@st.composite
def graphs(draw: st.DrawFn) -> KnowledgeGraph:
    """A small graph; so few ids that loops, multi-edges and repetitions are common."""
    num_entities = draw(st.integers(0, 5))
    num_relations = draw(st.integers(0, 3))
    triples: list[tuple[int, int, int]] = []
    if num_entities and num_relations:
        entity = st.integers(0, num_entities - 1)
        relation = st.integers(0, num_relations - 1)
        triples = draw(st.lists(st.tuples(entity, relation, entity), max_size=12))
    return KnowledgeGraph(np.array(triples).reshape(-1, 3), num_entities, num_relations)


def as_pair(source: KnowledgeGraph, target: KnowledgeGraph) -> GraphPair:
    return GraphPair("drawn", source, target, np.zeros((0, 2)))


pairs = st.builds(as_pair, graphs(), graphs())

EMPTY = as_pair(
    KnowledgeGraph(np.zeros((0, 3)), 0, 0), KnowledgeGraph(np.zeros((0, 3)), 0, 0)
)
BARE = as_pair(
    KnowledgeGraph(np.zeros((0, 3)), 2, 1), KnowledgeGraph(np.zeros((0, 3)), 1, 2)
)
CROWDED = as_pair(
    KnowledgeGraph([(0, 0, 1), (0, 0, 1), (0, 1, 1), (1, 0, 0), (2, 1, 2)], 4, 2),
    KnowledgeGraph([(0, 0, 1), (1, 0, 2), (2, 0, 2)], 3, 1),
)


def on_any_pair(test: Callable[[GraphPair], None]) -> Callable[[], None]:
    for pair in (EMPTY, BARE, CROWDED):
        test = example(pair)(test)
    return given(pairs)(test)


def directed_relations(pair: GraphPair) -> Relations:
    """Directed relations of each ordered pair of neighbours, in joint ids."""
    num_relations = pair.source.num_relations + pair.target.num_relations
    found: Relations = defaultdict(set)
    shifts = (0, 0), (pair.source.num_entities, pair.source.num_relations)
    for graph, (by, relation_by) in zip(
        (pair.source, pair.target), shifts, strict=True
    ):
        for head, relation, tail in graph.triples.tolist():
            found[head + by, tail + by].add(relation + relation_by)
            found[tail + by, head + by].add(relation + relation_by + num_relations)
    return found


def set_members(graph: JointGraph) -> list[list[int]]:
    """Relations of each set, as listed."""
    members: list[list[int]] = [[] for _ in range(graph.num_sets)]
    for row, relation in zip(graph.set_rows, graph.set_relations, strict=True):
        members[row].append(int(relation))
    return members


@on_any_pair
def test_sizes_count_both_graphs(pair: GraphPair) -> None:
    graph = join_graphs(pair)
    assert graph.num_source == pair.source.num_entities
    assert graph.num_target == pair.target.num_entities
    assert graph.num_entities == pair.source.num_entities + pair.target.num_entities
    assert graph.num_relations == pair.source.num_relations + pair.target.num_relations


@on_any_pair
def test_one_edge_per_ordered_pair_of_neighbours(pair: GraphPair) -> None:
    graph = join_graphs(pair)
    edges = list(zip(graph.edge_rows.tolist(), graph.edge_cols.tolist(), strict=True))
    assert edges == sorted(directed_relations(pair))
    assert graph.num_edges == len(edges)


@on_any_pair
def test_edges_name_their_relation_set(pair: GraphPair) -> None:
    graph = join_graphs(pair)
    expected = directed_relations(pair)
    members = set_members(graph)
    for row, col, index in zip(
        graph.edge_rows, graph.edge_cols, graph.edge_sets, strict=True
    ):
        assert sorted(members[index]) == sorted(expected[int(row), int(col)])


@on_any_pair
def test_equal_sets_are_held_once(pair: GraphPair) -> None:
    graph = join_graphs(pair)
    distinct = {frozenset(relations) for relations in directed_relations(pair).values()}
    assert graph.num_sets == len(distinct)
    assert {frozenset(relations) for relations in set_members(graph)} == distinct
    assert graph.set_rows.tolist() == sorted(graph.set_rows.tolist())


@on_any_pair
def test_incident_relations_are_distinct_per_entity(pair: GraphPair) -> None:
    expected = {
        (row, relation)
        for (row, _), relations in directed_relations(pair).items()
        for relation in relations
    }
    graph = join_graphs(pair)
    entities, relations = graph.incident_relations()
    assert list(zip(entities.tolist(), relations.tolist(), strict=True)) == sorted(
        expected
    )
    half = graph.num_relations
    inverse = {(entity, r - half if r >= half else r + half) for entity, r in expected}
    entities, relations = graph.incident_relations(opposite=True)
    assert list(zip(entities.tolist(), relations.tolist(), strict=True)) == sorted(
        inverse
    )


@on_any_pair
def test_closed_neighbourhoods_hold_every_entity_itself(pair: GraphPair) -> None:
    graph = join_graphs(pair)
    expected = set(directed_relations(pair)) | {
        (i, i) for i in range(graph.num_entities)
    }
    rows, cols = graph.closed_neighbourhoods()
    assert list(zip(rows.tolist(), cols.tolist(), strict=True)) == sorted(expected)


@on_any_pair
def test_triples_are_those_of_both_graphs(pair: GraphPair) -> None:
    expected = {tuple(triple) for triple in pair.source.triples.tolist()}
    for head, relation, tail in pair.target.triples.tolist():
        by, relation_by = pair.source.num_entities, pair.source.num_relations
        expected.add((head + by, relation + relation_by, tail + by))
    triples = [tuple(triple) for triple in join_graphs(pair).triples().tolist()]
    assert sorted(triples) == sorted(expected)
    assert triples == sorted(
        triples, key=lambda triple: (triple[0], triple[2], triple[1])
    )


def test_partners_on_both_sides() -> None:
    assert counterparts(np.array([[0, 4], [2, 3]]), 6).tolist() == [4, -1, 3, 2, 0, -1]


def test_the_first_link_counts() -> None:
    links = np.array([[1, 4], [0, 4], [1, 5]])
    assert counterparts(links, 6).tolist() == [4, 4, -1, -1, 1, 1]


def test_without_links() -> None:
    assert counterparts(np.zeros((0, 2), dtype=np.int64), 2).tolist() == [-1, -1]
