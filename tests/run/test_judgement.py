"""Runs that judge themselves: each warning by its criterion."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from omegaconf import DictConfig

from emea.config.run_config import RunConfig
from emea.data.arrays import NO_MATCH
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, GraphReading, PairReading
from emea.data.split import Split, Supervision
from emea.run.judgement import (
    candidate_warning,
    data_warnings,
    literal_settings,
    log_data,
    probability_warning,
    score_warning,
    shared_structure,
)

Configs = Callable[..., DictConfig]


def entry(
    iteration: int, hit: float, test: float = 0.5, **others: Any
) -> dict[str, Any]:
    scores = {"neural": {"hit@1": test}, "validation": {"hit@1": hit}}
    return {"iteration": iteration, **scores, **others}


@pytest.mark.parametrize(
    ("history", "test_hit", "words"),
    [
        ([entry(0, 0.5), entry(1, 0.6)], 0.5, []),
        (
            [entry(0, 0.5), entry(1, 0.4)],
            0.9,
            ["validation links fell", "0.5000 to 0.4000"],
        ),
        (
            [entry(0, 0.5), entry(1, 0.7), entry(2, 0.4)],
            0.5,
            ["em.keep=best", "iteration 1"],
        ),
        (
            [entry(0, 0.5), entry(1, 0.5)],
            0.4,
            ["test links fell from 0.5000 to 0.4000"],
        ),
        (
            [entry(0, 0.5), entry(1, 0.6, validation_answer={"hit@1": 0.2})],
            0.5,
            ["to 0.2000"],
        ),
        ([entry(0, 0.5), entry(1, 0.4, validation_answer={"hit@1": 0.6})], 0.5, []),
        ([entry(0, float("nan")), entry(1, float("nan"))], float("nan"), []),
    ],
)
def test_a_lower_score_is_a_warning(
    history: list[dict[str, Any]], test_hit: float, words: list[str]
) -> None:
    found = score_warning(history, history[-1], test_hit, 10_000, 10_000)
    assert bool(found) == bool(words)
    for word in words:
        assert found is not None and word in found
    if found:
        assert "em=none" in found and "em.iterations" in found


def test_the_warning_concerns_the_iteration_that_the_run_answers_with() -> None:
    history = [entry(0, 0.5), entry(1, 0.7), entry(2, 0.4)]
    assert score_warning(history, history[1], 0.5, 10_000, 10_000) is None


def test_a_loss_within_the_noise_of_few_links_is_no_warning() -> None:
    history = [entry(0, 0.64), entry(1, 0.63)]  # one of 100 validation links
    assert score_warning(history, history[-1], 0.7, 100, 10_000) is None
    # sqrt((0.64 * 0.36 + 0.63 * 0.37) / n) < 0.01 from n = 4,635 on
    assert score_warning(history, history[-1], 0.7, 4_634, 10_000) is None
    assert score_warning(history, history[-1], 0.7, 4_636, 10_000) is not None
    history = [entry(0, 0.64, test=0.71), entry(1, 0.63)]
    found = score_warning(history, history[-1], 0.69, 100, 10_000)
    assert found is not None and "test links fell" in found


def test_too_few_candidates_are_a_warning() -> None:
    candidates = np.array([[0, 1], [2, 3], [0, 3], [1, 2]])
    links = np.array([[0, 1], [1, 3], [2, 2], [3, 0]])
    assert candidate_warning(candidates, links) is None  # half of them
    found = candidate_warning(candidates, links[1:])
    assert found is not None and "33.3%" in found and "em.num_candidates" in found
    assert candidate_warning(candidates, links[:0]) is None


def test_low_probabilities_are_a_warning() -> None:
    low = np.full(200, 0.2)
    found = probability_warning(low)
    assert found is not None and "0.200" in found
    low[:2] = 0.5
    assert probability_warning(low) is None
    assert probability_warning(low[:0]) is None


def ring(num_entities: int, step: int) -> KnowledgeGraph:
    heads = np.arange(num_entities)
    tails = (heads + step) % num_entities
    triples = np.stack([heads, np.zeros_like(heads), tails], axis=1)
    return KnowledgeGraph(triples, num_entities, 1)


@pytest.mark.parametrize("seed", range(3))
def test_shared_structure_is_that_of_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    triples = [rng.integers(0, 30, (80, 3)) % [30, 4, 30] for _ in range(2)]
    source, target = (KnowledgeGraph(part, 30, 4) for part in triples)
    mapping = rng.permutation(30)
    mapping[rng.integers(0, 30, 5)] = NO_MATCH
    edges = {frozenset((head, tail)) for head, _, tail in target.triples.tolist()}
    found = [
        frozenset((int(mapping[head]), int(mapping[tail]))) in edges
        for head, _, tail in source.triples.tolist()
        if mapping[head] != NO_MATCH and mapping[tail] != NO_MATCH
    ]
    assert shared_structure(source, target, mapping) == pytest.approx(np.mean(found))


def test_unlike_graphs_and_few_links_are_warnings(tiny_config: Configs) -> None:
    from emea.record.pair_file import load_pair
    from emea.run.building import draw_split

    config = tiny_config("ratio.value=0.5")
    pair = load_pair(config)
    assert data_warnings(pair, draw_split(RunConfig.of(config), pair), False) == []
    few = draw_split(
        RunConfig.of(tiny_config("ratio.value=0.02", "split.num_validation=5")), pair
    )
    texts = " ".join(data_warnings(pair, few, False))
    advice = "split.num_validation or, with split=known, split.validation_share"
    for words in ("training links", "only 5 validation links", advice):
        assert words in texts
    one = Split(
        Supervision(few.supervision.train[:1], few.supervision.validation[:1]), few.test
    )
    texts = " ".join(data_warnings(pair, one, False))
    assert "There is only 1 training link. " in texts
    assert "There is only 1 validation link. " in texts
    identity = np.arange(100)
    assert shared_structure(ring(100, 1), ring(100, 1), identity) == 1.0
    assert shared_structure(ring(100, 1), ring(100, 7), identity) == 0.0
    assert shared_structure(ring(19, 1), ring(19, 1), np.arange(19)) is None


@pytest.mark.parametrize(
    ("names", "num_literals", "settings"),
    [
        ("http://x/{}", (2, 3), ["literals=similar"]),
        ("http://x/{}", (2, 0), ["literals=similar", "data.iri_names=true"]),
        ("x{}", (0, 0), []),
        ("x{}", None, []),
    ],
)
def test_literals_are_suggested_where_there_can_be_some(
    names: str, num_literals: tuple[int, int] | None, settings: list[str]
) -> None:
    graph = replace(ring(30, 1), entity_names=[names.format(i) for i in range(30)])
    reading = num_literals and PairReading(
        *(GraphReading("g", num) for num in num_literals)
    )
    pair = GraphPair(
        "p", graph, graph, np.zeros((0, 2), dtype=np.int64), reading=reading
    )
    assert literal_settings(pair) == settings
    split = Split(Supervision(pair.links, pair.links), pair.links)
    (text,) = data_warnings(pair, split, False)
    assert text.endswith(f"with {' '.join(settings)}." if settings else "if you can.")
    assert not data_warnings(pair, split, True)


def test_more_candidates_than_targets_are_a_warning(tiny_config: Configs) -> None:
    from emea.record.pair_file import load_pair
    from emea.run.building import draw_split

    config = tiny_config("data.num_entities=100", "em.num_candidates=5000")
    pair = load_pair(config)
    number = pair.target.num_entities
    texts = log_data(RunConfig.of(config), pair, draw_split(RunConfig.of(config), pair))
    expected = (
        f"em.num_candidates=5000 exceeds the number of target entities. All {number} "
    )
    assert any(text.startswith(expected) for text in texts)
    config = tiny_config("data.num_entities=100")
    assert not any(
        "em.num_candidates" in text
        for text in log_data(
            RunConfig.of(config), pair, draw_split(RunConfig.of(config), pair)
        )
    )
