"""Cuts of a pair of graphs, and what each part contains."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emea.data.arrays import IntArray
from emea.data.attributes import AttributeTriples
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.data.split import Supervision
from emea.data.vectors import EntityVectors
from emea.divide.cutting import (
    ContractedGraph,
    divide,
    overlapping,
    partition,
    separated_share,
)
from emea.divide.division import (
    Division,
    induced,
    links_between,
    read_entities,
    read_part,
)
from emea.errors import DataError, UserError

pytest.importorskip("pymetis")


def small_pair(num_entities: int = 300) -> GraphPair:
    return synthetic_pair(
        name="small",
        num_entities=num_entities,
        triples_per_entity=4.0,
        overlap=0.8,
        keep_prob=0.8,
        merged_share=0.2,
        split_share=0.2,
        num_relations=None,
        hub_skew=2.0,
        seed=0,
    )


def known_of(pair: GraphPair) -> Supervision:
    return Supervision(pair.links[:60], pair.links[60:100])


def sizes_of(pair: GraphPair) -> tuple[int, int]:
    return pair.source.num_entities, pair.target.num_entities


def rich_graph() -> KnowledgeGraph:
    """Six entities with names, labels, kinds, literals and vectors."""
    triples = [(0, 0, 1), (1, 1, 2), (2, 0, 2), (3, 1, 0), (4, 0, 5), (5, 1, 1)]
    literals = AttributeTriples(
        [(0, 0, 1), (2, 0, 0), (5, 1, 2), (5, 0, 1)],
        ["age", "name"],
        ["7", "8", "x"],
        [0, 0, 0],
    )
    return KnowledgeGraph(
        np.array(triples),
        6,
        2,
        [f"e{one}" for one in range(6)],
        ["p", "q"],
        literals,
        ["", "one", "two", "", "four", ""],
        np.array([1, 2, 1, 2, 1, 2]),
        (EntityVectors("names", np.array([1, 2, 5]), np.eye(3, dtype=np.float32)),),
    )


def facts(graph: KnowledgeGraph, inside: set[str]) -> set[tuple[object, ...]]:
    """What a graph says about some entities, by name: triples, literals, labels, vectors."""
    name = graph.entity_name
    found: set[tuple[object, ...]] = set()
    for head, relation, tail in graph.triples.tolist():
        found.add((name(head), graph.relation_name(relation), name(tail)))
    assert graph.attributes is not None and graph.kinds is not None
    texts = graph.attributes
    for entity, attribute, value in texts.triples.tolist():
        found.add(
            (
                name(entity),
                texts.attribute_names[attribute],
                texts.values[value],
                "literal",
            )
        )
    for entity in range(graph.num_entities):
        found.add((name(entity), graph.entity_label(entity), int(graph.kinds[entity])))
    for entity, values in zip(
        graph.vectors[0].entities, graph.vectors[0].values, strict=True
    ):
        found.add((name(int(entity)), tuple(values.tolist())))
    whole = {f"e{one}" for one in range(6)} - inside
    return {one for one in found if not whole & set(map(str, one))}


def test_a_part_keeps_all_that_belongs_to_its_entities() -> None:
    graph, chosen = rich_graph(), np.array([1, 2, 5])
    part = induced(graph, chosen)
    inside = {"e1", "e2", "e5"}
    assert list(part.entity_names or ()) == ["e1", "e2", "e5"]
    assert facts(part, inside) == facts(graph, inside)
    assert part.attributes is not None and len(part.attributes.values) == 3


def test_links_of_a_part_are_those_with_both_entities() -> None:
    links = np.array([(0, 1), (2, 5), (4, 3), (5, 0)])
    sources, targets = np.array([0, 2, 5]), np.array([1, 3, 5])
    assert links_between(links, (sources, targets)).tolist() == [[0, 0], [1, 2]]


def test_the_joint_graph_counts_the_triples_between_nodes() -> None:
    pair = small_pair()
    graph = ContractedGraph.of(pair, pair.links[:50])
    num_source = pair.source.num_entities
    for source, target in pair.links[:50].tolist():
        assert graph.nodes[source] == graph.nodes[num_source + target]
    expected = np.zeros((len(graph.sizes),) * 2, dtype=int)
    for side, shift in ((pair.source, 0), (pair.target, num_source)):
        for head, _, tail in side.triples.tolist():
            one, other = graph.nodes[head + shift], graph.nodes[tail + shift]
            if one != other:
                expected[one, other] += 1
                expected[other, one] += 1
    assert (graph.adjacency.toarray() == expected).all()
    assert graph.sizes.sum() == num_source + pair.target.num_entities


@pytest.mark.parametrize("overlap", [0.0, 0.1, 0.5])
def test_the_overlap_takes_the_nearest_nodes_that_fit(overlap: float) -> None:
    pair = small_pair()
    graph = ContractedGraph.of(pair, pair.links[:50])
    of_node = partition(graph, 3)
    edges = graph.adjacency.toarray()
    for number, inside in enumerate(overlapping(graph, of_node, 3, overlap)):
        core = of_node == number
        assert inside[core].all()
        shares = edges[:, core].sum(1) / np.maximum(edges.sum(1), 1)
        further = inside & ~core
        assert graph.sizes[further].sum() <= overlap * graph.sizes[core].sum()
        assert (shares[further] > 0).all()
        outside = ~inside & (shares > 0)
        if further.any() and outside.any():
            assert shares[further].min() >= shares[outside].max()
        assert bool(further.any()) == (overlap > 0)


def test_a_cut_keeps_links_together_and_balances_the_parts(tmp_path: Path) -> None:
    pair = small_pair(1000)
    known = Supervision(pair.links[:200], pair.links[200:400])
    graphs = replace(pair, links=pair.links[:0])
    division = divide(graphs, known, tmp_path, num_parts=4, overlap=0.2)
    rng = np.random.default_rng(0)
    at_random = [
        (rng.permutation(1000)[:300], rng.permutation(pair.target.num_entities)[:300])
        for _ in range(4)
    ]
    assert division.separated is not None
    assert division.separated < 0.3 * (
        separated_share(known.validation, at_random) or 0
    )
    parts = [read_entities(tmp_path, number, sizes_of(pair)) for number in range(4)]
    assert set(np.concatenate([one.source for one in parts])) == set(range(1000))
    assert max(one.num_source + one.num_target for one in division.parts) < 0.4 * 2000
    assert division == Division.read(tmp_path)
    together = (
        [{*one.source.tolist()} for one in parts],
        [{*one.target.tolist()} for one in parts],
    )
    lost = [
        not any(source in s and target in t for s, t in zip(*together, strict=True))
        for source, target in known.validation.tolist()
    ]
    assert division.separated == pytest.approx(np.mean(lost))
    kept = [
        any(head in part and tail in part for part in entities)
        for graph, entities in zip((pair.source, pair.target), together, strict=True)
        for head, _, tail in graph.triples.tolist()
    ]
    assert division.lost == pytest.approx(1 - np.mean(kept))
    inside = [links_between(known.train, (one.source, one.target)) for one in parts]
    assert sum(map(len, inside)) >= len(known.train)


def test_entities_know_the_share_of_their_triples_that_a_part_has(
    tmp_path: Path,
) -> None:
    pair = small_pair()
    divide(
        replace(pair, links=pair.links[:0]),
        known_of(pair),
        tmp_path,
        num_parts=2,
        overlap=0.1,
    )
    found, part = (
        read_entities(tmp_path, 1, sizes_of(pair)),
        read_part(str(tmp_path), 1),
    )
    degrees: IntArray = pair.source.degrees()
    for place, entity in enumerate(found.source.tolist()):
        share = part.source.degrees()[place] / max(1, degrees[entity])
        assert found.source_seen[place] == pytest.approx(share)


def test_impossible_cuts_are_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = small_pair()
    graphs, few = (
        replace(pair, links=pair.links[:0]),
        Supervision(pair.links[:3], pair.links[:0]),
    )
    with pytest.raises(
        DataError, match=r"cannot be cut into 5 parts: part \d would have"
    ) as told:
        divide(graphs, few, tmp_path / "few", num_parts=5, overlap=0.1)
    assert "Choose fewer parts" in str(told.value)
    assert not (tmp_path / "few" / "division.json").exists()
    monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
    with pytest.raises(UserError, match=r"pip install 'emea\[divide\]'"):
        divide(graphs, known_of(pair), tmp_path / "no", num_parts=2, overlap=0.1)
