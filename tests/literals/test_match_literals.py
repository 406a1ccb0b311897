"""Values that match, their weight, and the budget for values of many entities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.errors import DataError
from emea.literals.match_literals import EqualLiterals, SimilarLiterals
from emea.literals.value_nodes import value_nodes
from tests.literals.pairs_with_values import Facts, graph_with_values, pair_with_values

facts = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.integers(0, 1),
        st.sampled_from(["a", "A", "b", "c d", "!"]),
    ),
    min_size=1,
)


@given(facts)
def test_nodes_as_sets_would_have_them(given_facts: Facts) -> None:
    graph = graph_with_values(5, given_facts)
    assert graph.attributes is not None
    nodes = value_nodes(graph.attributes)
    known = {
        (entity, name, value.lower())
        for entity, name, value in given_facts
        if value != "!"
    }
    found = {
        (entity, name, nodes.keys[node])
        for entity, name, node in nodes.triples.tolist()
    }
    assert found == known and len(nodes.triples) == len(known)
    for node, key in enumerate(nodes.keys):
        holders = {entity for entity, _, value in known if value == key}
        assert nodes.num_holders[node] == len(holders)
    for attribute in {name for _, name, _ in known}:
        values = [value for _, name, value in known if name == attribute]
        assert nodes.attribute_functionality[attribute] == len(set(values)) / len(
            values
        )


def test_equal_values_match_and_rare_ones_are_certain() -> None:
    source = graph_with_values(
        4, [(0, 0, "Ann"), (1, 0, "bob"), (2, 0, "bob"), (3, 0, "x")]
    )
    target = graph_with_values(3, [(0, 0, "ANN"), (1, 0, "Bob"), (2, 0, "y")])
    matches = EqualLiterals()(pair_with_values(source, target))
    named = {
        (matches.source.entity_name(left), matches.target.entity_name(right)): prob
        for (left, right), prob in zip(
            matches.pairs.tolist(), matches.probs, strict=True
        )
    }
    assert named[('"Ann"', '"ANN"')] == 1
    # three values in four triples promise 3/4; two entities share this one
    assert named[('"bob"', '"Bob"')] == pytest.approx(0.5 / 0.75)
    assert len(named) == 2
    assert matches.anchors.tolist() == [[0, 0]]


def test_values_of_many_entities_are_left_out_first() -> None:
    common = [(entity, 0, "common") for entity in range(60)]
    rare = [(entity, 0, f"rare {entity}") for entity in range(60)]
    graph = graph_with_values(60, [*common, *rare])
    pair = pair_with_values(graph, graph)
    assert len(EqualLiterals(pairs_per_triple=20)(pair).pairs) == 61
    few = EqualLiterals(pairs_per_triple=10)(pair)
    assert len(few.pairs) == 60 and (few.probs == 1).all()


def test_similar_texts_are_weaker_evidence() -> None:
    source = graph_with_values(
        3, [(0, 0, "Arnie Morton's of Chicago"), (1, 0, "1999"), (2, 0, "q")]
    )
    target = graph_with_values(2, [(0, 0, "Arnie Mortons in Chicago"), (1, 0, "1998")])
    matches = SimilarLiterals(least_similarity=0.5)(pair_with_values(source, target))
    assert len(matches.pairs) == 1 and 0.5 <= matches.probs[0] < 1
    assert (
        matches.source.entity_name(int(matches.pairs[0, 0]))
        == '"Arnie Morton\'s of Chicago"'
    )
    # the best similar pair is an anchor, but numbers that differ are not
    assert matches.anchors.tolist() == [[0, 0]] and 0.5 <= matches.anchor_probs[0] < 0.9


def test_a_graph_without_literals_is_refused() -> None:
    graph = KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1)
    with pytest.raises(
        DataError, match=r"no literals on the source side.*data\.iri_names=true"
    ):
        EqualLiterals()(pair_with_values(graph, graph))


def people(shift: int) -> Facts:
    named = [(entity, 0, f"name {entity}") for entity in range(20)]
    return [
        *named,
        *((entity, 1, f"{1000 + (entity + shift) % 20}") for entity in range(20)),
    ]


def anchors(
    source: KnowledgeGraph, target: KnowledgeGraph
) -> dict[tuple[int, int], float]:
    matches = EqualLiterals()(pair_with_values(source, target))
    pairs = map(tuple, matches.anchors.tolist())
    return dict(zip(pairs, matches.anchor_probs.tolist(), strict=True))


def test_values_that_agree_make_sure_anchors() -> None:
    graph = graph_with_values(20, people(0))
    found = anchors(graph, graph)
    assert set(found) == {(entity, entity) for entity in range(20)}
    assert min(found.values()) > 0.99


def test_attributes_that_contradict_each_other_are_not_believed() -> None:
    # the second attribute points elsewhere for all entities but one kind of value
    source = graph_with_values(
        20, [*people(0), *((e, 2, f"code {e}") for e in range(20))]
    )
    target = graph_with_values(
        20, [*people(1), *((e, 2, f"code {e}") for e in range(20))]
    )
    found = anchors(source, target)
    assert set(found) == {(entity, entity) for entity in range(20)}


def test_shared_values_and_ties_make_no_anchor() -> None:
    source = graph_with_values(
        3, [(0, 0, "twin"), (1, 0, "twin"), (2, 0, "p"), (2, 0, "q")]
    )
    target = graph_with_values(3, [(0, 0, "twin"), (1, 0, "p"), (2, 0, "q")])
    assert not anchors(source, target)
