"""Uncertainty, influence and the choice of entities, against loops."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.sources.synthetic import synthetic_pair
from emea.matching.beliefs import Beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.support import Grounds
from emea.suggest.suggestion import Influence, most_helpful, relation_weights, uncertainties

GRAPH: KnowledgeGraph = synthetic_pair(num_entities=100, seed=3).source
TRIPLES = DirectedTriples(GRAPH)


def influence_by_loop(weights: list[float]) -> dict[tuple[int, int], float]:
    """The probability that a match of the first entity determines the second's."""
    doubt: dict[tuple[int, int], float] = {}
    for head, relation, tail in set(map(tuple, GRAPH.triples.tolist())):
        both = ((head, tail, relation), (tail, head, relation + GRAPH.num_relations))
        for neighbour, known, directed in set(both):
            before = doubt.get((known, neighbour), 1.0)
            doubt[known, neighbour] = before * (1 - weights[directed])
    return {pair: 1 - left for pair, left in doubt.items()}


def random_weights(seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 0.9 * torch.rand(TRIPLES.num_directed, generator=generator, dtype=torch.float64)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_uncertainty_is_the_probability_of_a_wrong_candidate(values: list[float]) -> None:
    total = max(1.0, sum(values))
    probs = [value / total for value in values]
    expected = 1 - max(probs)
    beliefs = Beliefs(
        torch.arange(len(probs)).unsqueeze(0), torch.tensor([probs], dtype=torch.float64)
    )
    assert float(uncertainties(beliefs)) == pytest.approx(expected, abs=1e-9)


def test_a_relation_without_a_counterpart_has_no_weight() -> None:
    beliefs = Beliefs(torch.zeros(100, 1, dtype=torch.int64), torch.zeros(100, 1))
    grounds = Grounds(TRIPLES, TRIPLES, beliefs, {(0, 1): (0.2, 0.5), (0, 2): (0.4, 0.1)})
    weights = relation_weights(grounds)
    assert float(weights[0]) == pytest.approx(0.5 * float(TRIPLES.inverse_functionality[0]))
    assert not weights[1:].any()


def test_influence_is_a_noisy_or_over_relations() -> None:
    weights = random_weights(1)
    influence = Influence.of(TRIPLES, weights)
    pairs = zip(influence.entities.tolist(), influence.neighbours.tolist(), strict=True)
    found = dict(zip(pairs, influence.probs.tolist(), strict=True))
    assert found == pytest.approx(influence_by_loop(weights.tolist()))


def test_entities_are_chosen_as_by_a_loop() -> None:
    weights, generator = random_weights(2), torch.Generator().manual_seed(5)
    uncertainty = torch.rand(100, generator=generator, dtype=torch.float64)
    is_open = torch.rand(100, generator=generator) < 0.7
    pairs, left = influence_by_loop(weights.tolist()), uncertainty.tolist()
    expected = []
    free = set(is_open.nonzero().squeeze(1).tolist())
    for _ in range(12):
        scores = {
            entity: left[entity]
            * (1 + sum(prob * left[n] for (known, n), prob in pairs.items() if known == entity))
            for entity in free
        }
        best = max(scores, key=lambda entity: scores[entity])
        expected.append((best, scores[best]))
        free.remove(best)
        for (known, neighbour), prob in pairs.items():
            if known == best:
                left[neighbour] *= 1 - prob
        left[best] = 0
    chosen = most_helpful(uncertainty, Influence.of(TRIPLES, weights), is_open, 12)
    assert [entity for entity, _ in chosen] == [entity for entity, _ in expected]
    assert [score for _, score in chosen] == pytest.approx([score for _, score in expected])


def test_choices_do_not_sit_in_one_neighbourhood() -> None:
    # Two equal stars: a hub and its leaves. A hub determines its leaves, and a leaf its hub.
    star = [[0, 0, leaf] for leaf in (1, 2, 3)] + [[4, 0, leaf] for leaf in (5, 6, 7)]
    graph = KnowledgeGraph(torch.tensor(star).numpy(), 8, 1)
    influence = Influence.of(DirectedTriples(graph), torch.full((2,), 0.9).double())
    chosen = most_helpful(torch.ones(8).double(), influence, torch.ones(8, dtype=torch.bool), 2)
    assert {entity for entity, _ in chosen} == {0, 4}


def test_no_more_than_the_open_entities_are_chosen() -> None:
    influence = Influence.of(TRIPLES, random_weights(1))
    is_open = torch.zeros(100, dtype=torch.bool)
    is_open[[4, 9]] = True
    chosen = most_helpful(torch.ones(100).double(), influence, is_open, 5)
    assert {entity for entity, _ in chosen} == {4, 9}
