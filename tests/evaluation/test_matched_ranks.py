"""Metrics of matchings."""

import math

import numpy as np

from emea.evaluation.ranks import matched_metrics, matched_ranks


def test_right_pairs_have_rank_one_and_others_none() -> None:
    links = np.array([[0, 3], [1, 4], [2, 5]])
    ranks = matched_ranks(np.array([3, -1, 4, 9]), links)
    assert ranks.in_pool.tolist() == ranks.in_all.tolist() == [1.0, math.inf, math.inf]
    metrics = matched_metrics(ranks)
    assert metrics["hit@1"] == metrics["all_targets"]["hit@1"] == 1 / 3
    assert all(metrics[key] is None for key in ("hit@5", "hit@10", "mrr", "mr"))


def test_without_links_nothing_is_said() -> None:
    metrics = matched_metrics(matched_ranks(np.array([0]), np.empty((0, 2), dtype=np.int64)))
    assert math.isnan(metrics["hit@1"])
