"""Relation inclusions, against counts by hand."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs, certain_beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.neighbour_join import TargetEdges, join_neighbours
from emea.rules.subsumption import Subsumption, estimate_subsumption

from .literal_paris import as_mapping, beliefs_of, both_directions, inclusions, pairs


def estimated(pair: GraphPair, beliefs: Beliefs) -> Subsumption:
    source, target = DirectedTriples(pair.source), DirectedTriples(pair.target)
    join = join_neighbours(source, target, TargetEdges(target), beliefs)
    return estimate_subsumption(join, beliefs, source, target)


def all_relations(pair: GraphPair) -> tuple[torch.Tensor, torch.Tensor]:
    num_source, num_target = 2 * pair.source.num_relations, 2 * pair.target.num_relations
    grid = torch.cartesian_prod(torch.arange(num_source), torch.arange(num_target))
    return grid[:, 0], grid[:, 1]


@settings(deadline=None)
@given(st.data(), pairs(), st.booleans())
def test_weighs_triples_by_probability(data: st.DataObject, pair: GraphPair, hard: bool) -> None:
    beliefs = data.draw(beliefs_of(pair, hard))
    relation, target_relation = all_relations(pair)
    forward, backward = estimated(pair, beliefs).of(relation, target_relation)
    source, target = both_directions(pair.source), both_directions(pair.target)
    expected = inclusions(source, target, as_mapping(beliefs))
    for i, key in enumerate(zip(relation.tolist(), target_relation.tolist(), strict=True)):
        one, other = expected.get(key, (0.0, 0.0))
        assert forward[i].item() == pytest.approx(one, abs=1e-5)
        assert backward[i].item() == pytest.approx(other, abs=1e-5)


@settings(deadline=None)
@given(pairs())
def test_counts_given_links_as_sets(pair: GraphPair) -> None:
    links = torch.from_numpy(pair.links.copy())
    relation, target_relation = all_relations(pair)
    found = estimated(pair, certain_beliefs(links, pair.source.num_entities))
    forward, backward = found.of(relation, target_relation)
    to_target = dict(pair.links.tolist())
    to_source = {target: source for source, target in pair.links.tolist()}
    source, target = both_directions(pair.source), both_directions(pair.target)
    size, size2 = Counter(r for _, r, _ in source), Counter(r for _, r, _ in target)
    for i, (r, r2) in enumerate(zip(relation.tolist(), target_relation.tolist(), strict=True)):
        held = sum(
            (to_target.get(h), r2, to_target.get(t)) in target for h, s, t in source if s == r
        )
        held2 = sum(
            (to_source.get(h), r, to_source.get(t)) in source for h, s, t in target if s == r2
        )
        assert forward[i].item() == pytest.approx(held / max(1, size[r]), abs=1e-6)
        assert backward[i].item() == pytest.approx(held2 / max(1, size2[r2]), abs=1e-6)


def test_divides_by_all_triples_matched_or_not() -> None:
    # r holds of (0, 1) and (1, 2), entity 2 is unmatched; r' holds of (0, 1) alone
    source = KnowledgeGraph(np.array([[0, 0, 1], [1, 0, 2]]), 3, 1)
    target = KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1)
    links = np.array([[0, 0], [1, 1]])
    pair = GraphPair("pair", source, target, links)
    found = estimated(pair, certain_beliefs(torch.from_numpy(links), 3))
    forward, backward = found.of(torch.tensor([0, 1, 0]), torch.tensor([0, 1, 1]))
    # as the relations themselves, as their inverses, and one against the other's inverse
    assert forward.tolist() == [0.5, 0.5, 0.0]
    assert backward.tolist() == [1.0, 1.0, 0.0]


def test_many_claims_on_one_target_triple_stay_a_probability() -> None:
    source = KnowledgeGraph(np.array([[0, 0, 1], [2, 0, 3]]), 4, 1)
    target = KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1)
    pair = GraphPair("pair", source, target, np.empty((0, 2), dtype=np.int64))
    beliefs = Beliefs(torch.tensor([[0], [1], [0], [1]]), torch.ones(4, 1))
    forward, backward = estimated(pair, beliefs).of(torch.tensor([0]), torch.tensor([0]))
    assert forward.item() == backward.item() == 1.0


def test_many_claims_on_one_target_triple_are_one() -> None:
    # both source triples claim the first of two target triples: half of r' is in r, not all
    source = KnowledgeGraph(np.array([[0, 0, 1], [2, 0, 3]]), 4, 1)
    target = KnowledgeGraph(np.array([[0, 0, 1], [2, 0, 3]]), 4, 1)
    pair = GraphPair("pair", source, target, np.empty((0, 2), dtype=np.int64))
    beliefs = Beliefs(torch.tensor([[0], [1], [0], [1]]), torch.ones(4, 1))
    forward, backward = estimated(pair, beliefs).of(torch.tensor([0]), torch.tensor([0]))
    assert (forward.item(), backward.item()) == (1.0, 0.5)
