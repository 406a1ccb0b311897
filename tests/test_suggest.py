"""Suggestions of finished runs and their files; scores and choices against loops."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.sources.synthetic import synthetic_pair
from emea.explain.alignment_page import View, alignment_page
from emea.explain.explainer import Explainer
from emea.matching.beliefs import Beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.subsumption import Subsumption
from emea.rules.support import Grounds
from emea.run.finished_run import FinishedRun
from emea.suggest import (
    COLUMNS,
    NUM_ALTERNATIVES,
    Influence,
    most_helpful,
    reason,
    relation_weights,
    sources_between,
    suggest,
    uncertainties,
    write_suggestions,
)

from .finished_runs import Finished

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
    return 0.9 * torch.rand(
        TRIPLES.num_directed, generator=generator, dtype=torch.float64
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_uncertainty_is_the_probability_of_a_wrong_candidate(
    values: list[float],
) -> None:
    total = max(1.0, sum(values))
    probs = [value / total for value in values]
    expected = 1 - max(probs)
    beliefs = Beliefs(
        torch.arange(len(probs)).unsqueeze(0),
        torch.tensor([probs], dtype=torch.float64),
    )
    assert float(uncertainties(beliefs)) == pytest.approx(expected, abs=1e-9)


def test_entities_with_a_candidate_in_a_range() -> None:
    targets = torch.arange(3).repeat(4, 1)
    probs = [[0.1, 0.7, 0.2], [0.9, 0.05, 0.05], [0.0, 0.0, 0.0], [0.3, 0.3, 0.4]]
    beliefs = Beliefs(targets, torch.tensor(probs, dtype=torch.float64))
    assert sources_between(beliefs, 0.2, 0.6).tolist() == [0, 3]
    assert sources_between(beliefs, 0.4, 0.7).tolist() == [0, 3]
    assert sources_between(beliefs, 0.5, 0.6).tolist() == []


def test_a_relation_without_a_counterpart_has_no_weight() -> None:
    beliefs = Beliefs(torch.zeros(100, 1, dtype=torch.int64), torch.zeros(100, 1))
    shares = torch.tensor([[0.2, 0.4], [0.5, 0.1]])
    included = Subsumption(torch.tensor([1, 2]), *shares, TRIPLES.num_directed)
    grounds = Grounds(TRIPLES, TRIPLES, beliefs, included)
    weights = relation_weights(grounds)
    assert float(weights[0]) == pytest.approx(
        0.5 * float(TRIPLES.inverse_functionality[0])
    )
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
            * (
                1
                + sum(
                    prob * left[n]
                    for (known, n), prob in pairs.items()
                    if known == entity
                )
            )
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
    assert [score for _, score in chosen] == pytest.approx(
        [score for _, score in expected]
    )


def test_choices_do_not_sit_in_one_neighbourhood() -> None:
    # Two equal stars: a hub and its leaves. A hub determines its leaves, and a leaf its hub.
    star = [[0, 0, leaf] for leaf in (1, 2, 3)] + [[4, 0, leaf] for leaf in (5, 6, 7)]
    graph = KnowledgeGraph(torch.tensor(star).numpy(), 8, 1)
    influence = Influence.of(DirectedTriples(graph), torch.full((2,), 0.9).double())
    chosen = most_helpful(
        torch.ones(8).double(), influence, torch.ones(8, dtype=torch.bool), 2
    )
    assert {entity for entity, _ in chosen} == {0, 4}


def test_no_more_than_the_open_entities_are_chosen() -> None:
    influence = Influence.of(TRIPLES, random_weights(1))
    is_open = torch.zeros(100, dtype=torch.bool)
    is_open[[4, 9]] = True
    chosen = most_helpful(torch.ones(100).double(), influence, is_open, 5)
    assert {entity for entity, _ in chosen} == {4, 9}


@pytest.mark.parametrize("kind", ["dual", "paper", "none", "paris"])
def test_unlabelled_entities_are_suggested_with_their_candidates(
    kind: str, finished: Finished
) -> None:
    run = finished(kind)
    found = suggest(Explainer(run), 15)
    known = {
        *run.split.supervision.train[:, 0],
        *run.split.supervision.validation[:, 0],
    }
    assert len({one.source for one in found}) == 15 and not known & {
        one.source for one in found
    }
    for one in found:
        probs = [prob for _, prob in one.candidates]
        assert probs == sorted(probs, reverse=True) and len(probs) <= NUM_ALTERNATIVES
        assert 0 <= one.score <= one.uncertainty * (1 + one.influence) + 1e-9
    best = found[0]
    assert best.score == pytest.approx(best.uncertainty * (1 + best.influence))


def test_blank_nodes_are_not_suggested(finished: Finished) -> None:
    run = finished("dual")
    first = suggest(Explainer(run), 1)[0].source
    names = [f"e{entity}" for entity in range(run.pair.source.num_entities)]
    names[first] = "_:[1]"
    pair = replace(run.pair, source=replace(run.pair.source, entity_names=names))
    found = suggest(Explainer(replace(run, pair=pair)), len(names))
    assert found and first not in {one.source for one in found}


def test_test_links_change_no_suggestion(finished: Finished) -> None:
    run = finished("dual")
    wrong = run.split.test.copy()
    wrong[:, 1] = np.random.default_rng(1).permutation(wrong[:, 1])
    links = np.concatenate(
        [run.split.supervision.train, run.split.supervision.validation]
    )
    for test in (wrong, wrong[:0]):
        pair = replace(run.pair, links=np.concatenate([links, test]))
        other = replace(run, pair=pair, split=replace(run.split, test=test))
        assert _page(other) == _page(run)


def _page(run: FinishedRun) -> str:
    explainer = Explainer(run)
    chosen = [(one.source, reason(one)) for one in suggest(explainer, 5)]
    return alignment_page(
        explainer, None, view=View("What to label next", "To label", chosen)
    )


def test_files_hold_the_suggestions(
    finished: Finished, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, folder = finished("dual"), tmp_path_factory.mktemp("files")
    found = suggest(Explainer(run), 4)
    table, lines = write_suggestions(folder, run.pair, found)
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert rows[0] == list(COLUMNS) and [int(row[0]) for row in rows[1:]] == [
        one.source for one in found
    ]
    objects = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [one["source"] for one in objects] == [row[0] for row in rows[1:]]
    assert [one["candidates"][0]["target"] for one in objects] == [
        row[1] for row in rows[1:]
    ]
    assert objects[0]["score"] == pytest.approx(found[0].score, abs=1e-5)


def test_only_the_given_entities_are_suggested(finished: Finished) -> None:
    explainer = Explainer(finished("dual"))
    found = [one.source for one in suggest(explainer, 20)]
    among = np.array(sorted(found[1::2]))
    chosen = [one.source for one in suggest(explainer, 20, among)]
    assert sorted(chosen) == among.tolist()
    assert suggest(explainer, 1, among)[0].source == chosen[0]
