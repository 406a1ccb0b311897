"""Ranking metrics computed by hand."""

import math

import numpy as np
import pytest

from emea.evaluation.metrics import mapping_metrics
from emea.evaluation.ranks import Missed, Ranks, both_pools, matched_metrics, ranking_metrics


def test_by_hand() -> None:
    ranks = np.array([1.0, 1.0, 2.0, 5.0, 6.0, 10.0, 20.0, 100.0])
    assert ranking_metrics(ranks) == pytest.approx(
        {
            "hit@1": 2 / 8,
            "hit@5": 4 / 8,
            "hit@10": 6 / 8,
            "mrr": (1 + 1 + 1 / 2 + 1 / 5 + 1 / 6 + 1 / 10 + 1 / 20 + 1 / 100) / 8,
            "mr": 145 / 8,
        }
    )


def test_tied_ranks_between_places_miss_the_cut() -> None:
    metrics = ranking_metrics(np.array([1.5, 5.5, 10.5]))
    assert metrics["hit@1"] == 0
    assert metrics["hit@5"] == pytest.approx(1 / 3)
    assert metrics["hit@10"] == pytest.approx(2 / 3)
    assert metrics["mrr"] == pytest.approx((1 / 1.5 + 1 / 5.5 + 1 / 10.5) / 3)


def test_no_ranks_give_no_numbers() -> None:
    metrics = ranking_metrics(np.zeros(0))
    assert list(metrics) == ["hit@1", "hit@5", "hit@10", "mrr", "mr"]
    assert all(math.isnan(value) for value in metrics.values())


def test_values_are_plain_floats() -> None:
    assert {type(value) for value in ranking_metrics(np.ones(2)).values()} == {float}


def test_metrics_cover_the_pool_and_all_targets() -> None:
    ranks = Ranks(in_pool=np.array([1.0, 2.0]), in_all=np.array([4.0, 8.0]))
    metrics = both_pools(ranks)
    beside = metrics.pop("all_targets")
    assert metrics == ranking_metrics(ranks.in_pool)
    assert beside == ranking_metrics(ranks.in_all)
    assert beside["mr"] == 6


def test_links_that_no_method_can_find_have_the_worst_rank_and_no_hit() -> None:
    ranks = Ranks(in_pool=np.array([1.0, 4.0, 2.0]), in_all=np.array([3.0, 8.0, 9.0]))
    metrics = both_pools(ranks, Missed(2 / 5, pool_size=5, num_all=20))
    in_all = metrics.pop("all_targets")
    assert metrics == pytest.approx(
        {
            "hit@1": 1 / 5,
            "hit@5": 3 / 5,
            "hit@10": 3 / 5,
            "mrr": (1 + 1 / 4 + 1 / 2 + 2 / 5) / 5,
            "mr": (1 + 4 + 2 + 5 + 5) / 5,
        }
    )
    assert in_all["mr"] == pytest.approx((3 + 8 + 9 + 20 + 20) / 5)
    matched = Ranks(in_pool=np.array([1.0, np.inf, 1.0]), in_all=np.array([1.0, np.inf, 1.0]))
    assert matched_metrics(matched, 2 / 5)["hit@1"] == pytest.approx(2 / 5)


def test_links_that_no_method_can_find_lower_the_recall() -> None:
    predicted, gold = np.array([[0, 0], [1, 2]]), np.array([[0, 0], [1, 1], [2, 2]])
    metrics = mapping_metrics(predicted, gold, num_missed=1)
    assert (metrics["precision"], metrics["recall"]) == (1 / 2, 1 / 4)
    assert metrics["f1"] == pytest.approx(1 / 3)
