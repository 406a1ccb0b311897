"""Traits of synthetic pairs."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair


@pytest.fixture(scope="module")
def pair() -> GraphPair:
    return synthetic_pair(num_entities=5000, seed=3)


@pytest.fixture(params=["source", "target"])
def graph(pair: GraphPair, request: pytest.FixtureRequest) -> KnowledgeGraph:
    found: KnowledgeGraph = getattr(pair, request.param)
    return found


def test_sizes(pair: GraphPair, graph: KnowledgeGraph) -> None:
    assert graph.num_entities == 5000
    assert len(pair.links) == 3750
    assert 3.5 < graph.num_triples / graph.num_entities < 5
    assert graph.entity_names is None and pair.official is None


def test_degrees_are_heavy_tailed(graph: KnowledgeGraph) -> None:
    degrees = graph.degrees()
    assert degrees.max() > 20 * degrees.mean()
    assert np.median(degrees) < degrees.mean()


def linked_pairs(pair: GraphPair) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Connected entity pairs of both sides, in source ids, among linked entities."""
    to_source = np.full(pair.target.num_entities, -1)
    to_source[pair.links[:, 1]] = pair.links[:, 0]
    linked = np.isin(np.arange(pair.source.num_entities), pair.links[:, 0])
    ends = pair.source.triples[:, [0, 2]]
    source = {(h, t) for h, t in ends.tolist() if linked[h] and linked[t]}
    mapped = to_source[pair.target.triples[:, [0, 2]]]
    target = {(h, t) for h, t in mapped.tolist() if h >= 0 and t >= 0}
    return source, target


def test_sides_share_part_of_their_facts(pair: GraphPair) -> None:
    source, target = linked_pairs(pair)
    shared = len(source & target) / len(source | target)
    # Both keep a fact with probability 0.64, one of them with 0.96.
    assert 0.55 < shared < 0.75


def test_relations_differ_in_granularity(pair: GraphPair) -> None:
    assert pair.source.num_relations != pair.target.num_relations
    same = synthetic_pair(num_entities=5000, seed=3, merged_share=0, split_share=0)
    split = synthetic_pair(num_entities=5000, seed=3, merged_share=0, split_share=1)
    merged = synthetic_pair(num_entities=5000, seed=3, merged_share=0.5, split_share=0)
    sizes = [each.source.num_relations for each in (merged, same, split)]
    assert sizes[0] < 0.9 * sizes[1] < 0.6 * sizes[2]


def test_ids_carry_no_information(pair: GraphPair) -> None:
    assert abs(np.corrcoef(pair.links.T)[0, 1]) < 0.06
    assert abs(pair.links[:, 0].mean() / 2500 - 1) < 0.03


def test_seeds(pair: GraphPair) -> None:
    assert synthetic_pair(num_entities=5000, seed=3).checksum() == pair.checksum()
    assert synthetic_pair(num_entities=5000, seed=4).checksum() != pair.checksum()


@given(
    st.integers(100, 400),
    st.floats(0.01, 1),
    st.floats(0.05, 1),
    st.one_of(st.none(), st.integers(1, 50)),
    st.integers(0, 2**32),
)
def test_any_arguments_give_a_valid_pair(
    num_entities: int,
    overlap: float,
    keep_prob: float,
    num_relations: int | None,
    seed: int,
) -> None:
    pair = synthetic_pair(
        num_entities=num_entities,
        overlap=overlap,
        keep_prob=keep_prob,
        num_relations=num_relations,
        seed=seed,
    )
    assert len(pair.links) == max(1, round(overlap * num_entities))
    for graph in (pair.source, pair.target):
        assert graph.num_entities == num_entities
        assert len(set(map(tuple, graph.triples.tolist()))) == graph.num_triples
        assert (graph.degrees() == 0).mean() < 0.02


@pytest.mark.slow
def test_a_million_entities_within_a_minute() -> None:
    start = time.process_time()
    pair = synthetic_pair(num_entities=1_000_000, triples_per_entity=5)
    assert time.process_time() - start < 60
    for graph in (pair.source, pair.target):
        assert graph.num_entities == 1_000_000
        assert 4_500_000 < graph.num_triples < 5_500_000
        assert graph.degrees().min() >= 1
