"""The evidence for one pair, against the vectorised rules and against loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.baselines.paris_reasoner import ParisReasoner
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs, Matching
from emea.rules.implied_pairs import FIXED_POINT
from emea.rules.paris import PARIS
from emea.rules.rule import RuleView
from emea.rules.support import Grounds, neighbours_of, relations_between, support_of

from ..baselines.random_pairs import overlapping_pair
from .literal_paris import (
    LiteralPARIS,
    as_mapping,
    beliefs_of,
    best_alone,
    both_directions,
    inclusions,
    pairs,
)


def prepared(pair: GraphPair, beliefs: Beliefs) -> tuple[PARIS, Grounds]:
    rule = PARIS(pair)
    rule.prepare(RuleView(beliefs, torch.zeros(beliefs.num_source, 1)))
    return rule, Grounds(rule.source, rule.target, beliefs, rule.inclusions())


@given(st.data(), pairs())
def test_any_pair_has_the_value_of_the_triple_loop(
    data: st.DataObject, pair: GraphPair
) -> None:
    beliefs = data.draw(beliefs_of(pair))
    _, grounds = prepared(pair, beliefs)
    source, target = both_directions(pair.source), both_directions(pair.target)
    q = as_mapping(beliefs)
    twin = LiteralPARIS(source, target, inclusions(source, target, best_alone(q)))
    for e in range(pair.source.num_entities):
        for e2 in range(pair.target.num_entities):
            found = support_of(grounds, e, e2)
            assert found.value == pytest.approx(twin.value(e, e2, q), abs=1e-5)


@given(st.data(), pairs())
def test_shares_are_of_one_whole_and_sorted(
    data: st.DataObject, pair: GraphPair
) -> None:
    _, grounds = prepared(pair, data.draw(beliefs_of(pair)))
    support = support_of(grounds, 0, 0)
    shares = support.shares()
    assert shares == sorted(shares, reverse=True)
    assert all(0 < share <= 1 for share in shares)
    assert math.isclose(sum(shares), 1) or not support.pieces
    assert len({piece[:4] for piece in support.pieces}) == len(support.pieces)


def test_certain_pieces_have_finite_shares() -> None:
    star = KnowledgeGraph(np.array([[0, 0, leaf] for leaf in range(1, 5)]), 5, 1)
    pair = GraphPair("stars", star, star, np.empty((0, 2), dtype=np.int64))
    beliefs = Beliefs(torch.arange(5).unsqueeze(1), torch.ones(5, 1))
    support = support_of(prepared(pair, beliefs)[1], 0, 0)
    assert support.value == pytest.approx(1)
    assert support.shares() == pytest.approx([0.25] * 4)


@pytest.mark.parametrize("seed", range(3))
def test_pieces_are_those_the_baseline_hears(seed: int) -> None:
    pair = overlapping_pair(seed, 30)
    rule = ParisReasoner(pair)
    links = torch.from_numpy(pair.links.copy())[::2]
    known = Matching.of_links(links, pair.source.num_entities, pair.target.num_entities)
    matching = rule.iterated(known, rule.iterated(known, known, initial=True))
    grounds = Grounds(
        rule.source,
        rule.target,
        matching.beliefs(),
        rule.inclusions(matching),
        least_inclusion=rule.theta,
        least_evidence=rule.least_evidence,
    )
    compared = 0
    for implied in rule.implied(
        matching, torch.ones_like(matching.targets, dtype=torch.bool)
    ):
        rows = zip(*(column.tolist() for column in implied), strict=True)
        for source, target, doubt in rows:
            assert support_of(grounds, source, target).total == pytest.approx(
                -doubt / FIXED_POINT
            )
            compared += 1
    assert compared


@given(pairs())
def test_neighbours_and_relations_are_those_of_the_triples(pair: GraphPair) -> None:
    rule = PARIS(pair)
    triples = both_directions(pair.source)
    for e in range(pair.source.num_entities):
        around = sorted({t for h, _, t in triples if h == e})
        assert neighbours_of(rule.source, e) == around
        for n in range(pair.source.num_entities):
            between = sorted(r for h, r, t in triples if (h, t) == (e, n))
            assert sorted(relations_between(rule.source, e, n)) == between
