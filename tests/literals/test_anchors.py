"""Anchors from unambiguous equal values."""

from emea.data.graph import KnowledgeGraph
from emea.literals.match_literals import EqualLiterals
from tests.literals.pairs_with_values import Facts, graph_with_values, pair_with_values


def people(shift: int) -> Facts:
    named = [(entity, 0, f"name {entity}") for entity in range(20)]
    return [*named, *((entity, 1, f"{1000 + (entity + shift) % 20}") for entity in range(20))]


def anchors(source: KnowledgeGraph, target: KnowledgeGraph) -> dict[tuple[int, int], float]:
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
    source = graph_with_values(20, [*people(0), *((e, 2, f"code {e}") for e in range(20))])
    target = graph_with_values(20, [*people(1), *((e, 2, f"code {e}") for e in range(20))])
    found = anchors(source, target)
    assert set(found) == {(entity, entity) for entity in range(20)}


def test_shared_values_and_ties_make_no_anchor() -> None:
    source = graph_with_values(3, [(0, 0, "twin"), (1, 0, "twin"), (2, 0, "p"), (2, 0, "q")])
    target = graph_with_values(3, [(0, 0, "twin"), (1, 0, "p"), (2, 0, "q")])
    assert not anchors(source, target)
