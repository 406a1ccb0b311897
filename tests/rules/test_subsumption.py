"""Relation inclusions, against counts by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.neighbour_join import join_neighbours
from emea.rules.subsumption import (
    SMOOTHING,
    Subsumption,
    TermInclusions,
    class_inclusions,
    estimate_subsumption,
    relation_inclusions,
)

from .literal_paris import as_mapping, beliefs_of, both_directions, inclusions, pairs


def estimated(pair: GraphPair, beliefs: Beliefs) -> Subsumption:
    source, target = DirectedTriples(pair.source), DirectedTriples(pair.target)
    join = join_neighbours(source, target, beliefs)
    return estimate_subsumption(join, beliefs, source, target)


def all_relations(pair: GraphPair) -> tuple[torch.Tensor, torch.Tensor]:
    num_source, num_target = (
        2 * pair.source.num_relations,
        2 * pair.target.num_relations,
    )
    grid = torch.cartesian_prod(torch.arange(num_source), torch.arange(num_target))
    return grid[:, 0], grid[:, 1]


@settings(deadline=None)
@given(st.data(), pairs(), st.booleans())
def test_weighs_triples_by_probability(
    data: st.DataObject, pair: GraphPair, hard: bool
) -> None:
    beliefs = data.draw(beliefs_of(pair, hard))
    relation, target_relation = all_relations(pair)
    forward, backward = estimated(pair, beliefs).of(relation, target_relation)
    source, target = both_directions(pair.source), both_directions(pair.target)
    expected = inclusions(source, target, as_mapping(beliefs))
    for i, key in enumerate(
        zip(relation.tolist(), target_relation.tolist(), strict=True)
    ):
        one, other = expected.get(key, (0.0, 0.0))
        assert forward[i].item() == pytest.approx(one, abs=1e-5)
        assert backward[i].item() == pytest.approx(other, abs=1e-5)


def test_divides_by_all_triples_matched_or_not() -> None:
    # r holds of (0, 1) and (1, 2), entity 2 is unmatched; r' holds of (0, 1) alone
    source = KnowledgeGraph(np.array([[0, 0, 1], [1, 0, 2]]), 3, 1)
    target = KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1)
    links = np.array([[0, 0], [1, 1]])
    pair = GraphPair("pair", source, target, links)
    found = estimated(
        pair, Beliefs(torch.tensor([[0], [1], [0]]), torch.tensor([[1.0], [1], [0]]))
    )
    forward, backward = found.of(torch.tensor([0, 1, 0]), torch.tensor([0, 1, 1]))
    # as the relations themselves, as their inverses, and one against the other's inverse
    assert forward.tolist() == [0.5, 0.5, 0.0]
    assert backward.tolist() == [1.0, 1.0, 0.0]


def test_many_claims_on_one_target_triple_are_one() -> None:
    # both source triples claim the first of two target triples: half of r' is in r, not all
    source = KnowledgeGraph(np.array([[0, 0, 1], [2, 0, 3]]), 4, 1)
    target = KnowledgeGraph(np.array([[0, 0, 1], [2, 0, 3]]), 4, 1)
    pair = GraphPair("pair", source, target, np.empty((0, 2), dtype=np.int64))
    beliefs = Beliefs(torch.tensor([[0], [1], [0], [1]]), torch.ones(4, 1))
    forward, backward = estimated(pair, beliefs).of(
        torch.tensor([0]), torch.tensor([0])
    )
    assert (forward.item(), backward.item()) == (1.0, 0.5)


RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
NUM_ENTITIES, NUM_RELATIONS = 5, 2

Numbers = dict[tuple[int, int, bool], tuple[float, float, int]]
"""Both inclusions and the number of matched triples, by source term, target term and direction."""

triples = st.sets(
    st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 4)),
    min_size=1,
    max_size=12,
)
answers = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([0.0, 0.25, 0.5, 1.0])),
    min_size=5,
    max_size=5,
)


def graph_of(rows: set[tuple[int, int, int]]) -> KnowledgeGraph:
    """Relation 1 leads to classes."""
    return KnowledgeGraph(
        np.array(sorted(rows)),
        NUM_ENTITIES,
        NUM_RELATIONS,
        relation_names=["knows", RDF_TYPE],
    )


def answer_of(answer: list[tuple[int, float]]) -> Beliefs:
    targets, probs = zip(*answer, strict=True)
    return Beliefs(
        torch.tensor(targets).unsqueeze(1), torch.tensor(probs).double().unsqueeze(1)
    )


def as_numbers(found: TermInclusions) -> Numbers:
    columns = (found.sources, found.targets, found.is_inverse)
    keys = zip(*(column.tolist() for column in columns), strict=True)
    numbers = (found.source_in_target, found.target_in_source, found.num_matched)
    return dict(
        zip(keys, zip(*(one.tolist() for one in numbers), strict=True), strict=True)
    )


def relations_by_loops(
    ours: set, theirs: set, answer: list[tuple[int, float]]
) -> Numbers:
    """Shares of the triples with matched ends; a claimed target triple counts at most once."""
    target_prob = [
        min(1.0, sum(prob for target, prob in answer if target == entity))
        for entity in range(5)
    ]
    numbers: Numbers = {}
    for r in range(NUM_RELATIONS):
        size = (
            sum(answer[h][1] * answer[t][1] for h, one, t in ours if one == r)
            + SMOOTHING
        )
        for r2 in range(NUM_RELATIONS):
            for inverse in (False, True):
                held = {
                    (h2, t2): [
                        answer[h][1] * answer[t][1]
                        for h, one, t in ours
                        if one == r
                        and (answer[h][0], answer[t][0])
                        == ((t2, h2) if inverse else (h2, t2))
                        and answer[h][1] * answer[t][1] > 0
                    ]
                    for h2, other, t2 in theirs
                    if other == r2
                }
                count = sum(map(len, held.values()))
                size2 = (
                    sum(target_prob[h2] * target_prob[t2] for h2, t2 in held)
                    + SMOOTHING
                )
                if count:
                    forth = min(1.0, sum(map(sum, held.values())) / size)
                    back = sum(min(1.0, sum(one)) for one in held.values()) / size2
                    numbers[r, r2, inverse] = forth, min(1.0, back), count
    return numbers


def classes_by_loops(
    ours: set, theirs: set, answer: list[tuple[int, float]]
) -> Numbers:
    """Shares of the instances whose counterpart has a class."""
    types = {(h, t) for h, r, t in ours if r == 1}
    types2 = {(h, t) for h, r, t in theirs if r == 1}
    with_class = {h for h, _ in types}
    typed2 = {h for h, _ in types2}
    known = [e for e in with_class if answer[e][1] > 0 and answer[e][0] in typed2]
    numbers: Numbers = {}
    for c in range(NUM_ENTITIES):
        members = [e for e in known if (e, c) in types]
        size = sum(answer[e][1] for e in members) + SMOOTHING
        for c2 in range(NUM_ENTITIES):
            shared = [e for e in members if (answer[e][0], c2) in types2]
            if not shared:
                continue
            back, size2 = 0.0, SMOOTHING
            for e2 in {h for h, t in types2 if t == c2}:
                size2 += min(
                    1.0, sum(answer[e][1] for e in known if answer[e][0] == e2)
                )
                back += min(
                    1.0, sum(answer[e][1] for e in shared if answer[e][0] == e2)
                )
            forth = sum(answer[e][1] for e in shared) / size
            numbers[c, c2, False] = forth, back / size2, len(shared)
    return numbers


def assert_equal(found: Numbers, expected: Numbers) -> None:
    assert found.keys() == expected.keys()
    for key, numbers in expected.items():
        assert found[key] == pytest.approx(numbers, rel=1e-6)


@given(triples, triples, answers)
def test_relations_are_shares_of_matched_triples(
    ours: set, theirs: set, answer: list[tuple[int, float]]
) -> None:
    found = relation_inclusions(graph_of(ours), graph_of(theirs), answer_of(answer))
    assert_equal(as_numbers(found), relations_by_loops(ours, theirs, answer))


@given(triples, triples, answers)
def test_classes_are_shares_of_matched_instances(
    ours: set, theirs: set, answer: list[tuple[int, float]]
) -> None:
    found = class_inclusions(graph_of(ours), graph_of(theirs), answer_of(answer))
    assert_equal(as_numbers(found), classes_by_loops(ours, theirs, answer))


@given(triples, triples, answers)
def test_examples_are_matched_triples_of_the_graphs(
    ours: set, theirs: set, answer: list[tuple[int, float]]
) -> None:
    graphs, beliefs = (graph_of(ours), graph_of(theirs)), answer_of(answer)
    found = relation_inclusions(*graphs, beliefs)
    rows = zip(
        *(
            one.tolist()
            for one in (found.sources, found.targets, found.is_inverse, found.examples)
        ),
        strict=True,
    )
    for r, r2, inverse, (h, t, h2, t2) in rows:
        assert (h, r, t) in ours and (h2, r2, t2) in theirs
        assert (answer[h][0], answer[t][0]) == ((t2, h2) if inverse else (h2, t2))
        weights = [
            answer[a][1] * answer[b][1]
            for a, one, b in ours
            if one == r
            and (answer[a][0], r2, answer[b][0])[:: -1 if inverse else 1]
            in {(x, y, z) for x, y, z in theirs}
        ]
        assert answer[h][1] * answer[t][1] == max(weights)
    classes = class_inclusions(*graphs, beliefs)
    for c, c2, (h, t, h2, t2) in zip(
        *(one.tolist() for one in (classes.sources, classes.targets, classes.examples)),
        strict=True,
    ):
        assert (t, t2) == (c, c2) and answer[h][0] == h2
        assert (h, 1, c) in ours and (h2, 1, c2) in theirs
