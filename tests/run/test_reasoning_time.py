"""The time of reasoning is estimated from sizes and settings."""

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from omegaconf import DictConfig

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.run.reasoning_time import announce_reasoning, estimate_reasoning

Configs = Callable[..., DictConfig]
CPU = torch.device("cpu")


def pair_of(num_entities: int, num_triples: int) -> GraphPair:
    """A pair in which each entity has the same degree."""
    heads = np.arange(num_triples) % num_entities
    triples = np.stack([heads, np.zeros_like(heads), (heads + 1) % num_entities], axis=1)
    graph = KnowledgeGraph(triples, num_entities, 1)
    return GraphPair("sizes", graph, graph, np.zeros((0, 2), np.int64))


def seconds(config: DictConfig, pair: GraphPair, device: str = "cpu") -> float:
    found = estimate_reasoning(config, pair, torch.device(device))
    assert found is not None
    return found


@pytest.mark.parametrize("em", ["paper", "dual", "one_to_one"])
def test_the_time_grows_with_triples_candidates_and_iterations(
    em: str, tiny_config: Configs
) -> None:
    pair, larger = pair_of(10_000, 50_000), pair_of(20_000, 100_000)
    usual = [f"em={em}", "em.iterations=1"]
    key = "em.num_candidates" if em == "paper" else "em.two_way.max_candidates"
    one = seconds(tiny_config(*usual), pair)
    # the joins grow with the triples, the searches of the two-way step with the pairs
    assert 2 * one <= seconds(tiny_config(*usual), larger) < 4 * one
    assert one < seconds(tiny_config(*usual, f"{key}=60"), pair)
    more = seconds(tiny_config(f"em={em}", "em.iterations=3"), pair)
    assert more == pytest.approx(2 * one)  # two more iterations, and the step before the first
    assert seconds(tiny_config(*usual), pair, "cuda") < one


def test_lists_of_an_approximate_search_are_used_again(tiny_config: Configs) -> None:
    pair, usual = pair_of(10_000, 50_000), ["em=dual", "em.iterations=1"]
    exact, listed, small, large = (
        seconds(tiny_config(*usual, *search), pair)
        for search in (
            ["search=exact"],
            ["search=one_pass"],
            ["search=auto"],
            ["search=auto", "search.max_exact_pairs=1000"],
        )
    )
    assert exact == small > listed == large > 0


def test_hubs_take_longer(tiny_config: Configs) -> None:
    pair, config = pair_of(1000, 5000), tiny_config("em=paper", "em.iterations=1")
    star = pair.target.triples.copy()
    star[: len(star) // 2, 0] = 0
    target = KnowledgeGraph(star, pair.target.num_entities, 1)
    assert seconds(config, replace(pair, target=target)) > 10 * seconds(config, pair)


def test_the_time_grows_in_proportion_to_the_degree_of_a_large_hub(tiny_config: Configs) -> None:
    config = tiny_config("em=one_to_one", "em.iterations=1", "search=one_pass")
    times = []
    for degree in (20_000, 200_000):
        triples = np.zeros((degree, 3), np.int64)
        triples[:, 0] = np.arange(1, degree + 1)
        graph = KnowledgeGraph(triples, degree + 1, 1)
        times.append(seconds(config, GraphPair("star", graph, graph, np.zeros((0, 2), np.int64))))
    assert times[1] == pytest.approx(10 * times[0], rel=0.1)


def test_fewer_rounds_and_updates_take_less(tiny_config: Configs) -> None:
    pair, usual = pair_of(10_000, 50_000), ["em=dual", "em.iterations=1"]
    one = seconds(tiny_config(*usual), pair)
    for change in ("em.two_way.propagation=0", "em.two_way.sweeps=1"):
        assert seconds(tiny_config(*usual, change), pair) < one
    rounds = [
        seconds(tiny_config(*usual, f"em.two_way.propagation={most}"), pair) for most in (5, 50)
    ]
    assert rounds[0] == rounds[1]  # they end when few matches change


def test_runs_without_reasoning_have_no_estimate(tiny_config: Configs) -> None:
    pair = pair_of(100, 500)
    assert estimate_reasoning(tiny_config("em=none"), pair, CPU) is None
    assert estimate_reasoning(tiny_config("method=paris"), pair, CPU) is None


def test_long_reasoning_is_announced(
    tiny_config: Configs, caplog: pytest.LogCaptureFixture
) -> None:
    config = tiny_config("em=dual", "em.iterations=10")
    with caplog.at_level(logging.INFO):
        announce_reasoning(config, pair_of(100, 500), CPU)
    assert caplog.text == ""
    with caplog.at_level(logging.INFO):
        announce_reasoning(config, pair_of(100_000, 500_000), CPU)
    assert "of CPU time. A smaller em.two_way.max_candidates or em.iterations" in caplog.text
