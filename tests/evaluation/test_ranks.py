"""Realistic ranks against sorted lists, ties included."""

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from emea.data.arrays import IntArray
from emea.evaluation.ranks import (
    Missed,
    Ranks,
    both_pools,
    filtered,
    link_ranks,
    matched_metrics,
    matched_ranks,
    ranking_metrics,
)
from emea.kernels.rank_counts import rank_counts

from ..matching.random_tables import from_scores

with_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def looped_rank(right: float, all_scores: list[float]) -> float:
    """Mean of the first and the last place the right score takes in a sorted list."""
    places = [
        place
        for place, score in enumerate(sorted(all_scores, reverse=True), start=1)
        if score == right
    ]
    return (places[0] + places[-1]) / 2


@st.composite
def tables_with_links(draw: st.DrawFn) -> tuple[Tensor, IntArray]:
    """Scores of few values and some one-to-one links in any order."""
    num_source, num_target = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    row = st.lists(st.integers(-2, 2), min_size=num_target, max_size=num_target)
    rows = draw(st.lists(row, min_size=num_source, max_size=num_source))
    num_links = draw(st.integers(0, min(num_source, num_target)))
    sources = draw(st.permutations(range(num_source)))[:num_links]
    targets = draw(st.permutations(range(num_target)))[:num_links]
    links = np.array([sources, targets], dtype=np.int64).T
    return torch.tensor(rows, dtype=torch.float32), links


@pytest.mark.usefixtures("block_bytes", "each_kernels")
@with_fixture
@given(tables_with_links())
def test_ranks_among_pool_and_all(drawn: tuple[Tensor, IntArray]) -> None:
    scores, links = drawn
    ranks = link_ranks(from_scores(scores), links)
    assert len(ranks.in_all) == len(ranks.in_pool) == len(links)
    for index, (source, target) in enumerate(links.tolist()):
        row = scores[source].tolist()
        pool = [row[other] for other in links[:, 1]]
        assert ranks.in_all[index] == looped_rank(row[target], row)
        assert ranks.in_pool[index] == looped_rank(row[target], pool)


@pytest.mark.usefixtures("each_kernels")
@pytest.mark.parametrize("num_columns", [0, 1, 40, 77])
def test_counts_are_those_of_a_loop(num_columns: int) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(30, 77, generator=generator).round()
    scores[3, 5] = scores[4, 0] = torch.nan  # counts as better
    better, equal = rank_counts(scores, scores[:, :1], num_columns)
    for row, values in enumerate(scores.tolist()):
        counted = values[:num_columns]
        assert better[row] == sum(not value <= values[0] for value in counted)
        assert equal[row] == sum(value == values[0] for value in counted)


def test_right_pairs_have_rank_one_and_others_none() -> None:
    links = np.array([[0, 3], [1, 4], [2, 5]])
    ranks = matched_ranks(np.array([[0, 3], [2, 4], [3, 9]]), links)
    assert ranks.in_pool.tolist() == ranks.in_all.tolist() == [1.0, math.inf, math.inf]
    metrics = matched_metrics(ranks)
    assert metrics["hit@1"] == metrics["all_targets"]["hit@1"] == 1 / 3
    assert all(metrics[key] is None for key in ("hit@5", "hit@10", "mrr", "mr"))
    metrics = matched_metrics(matched_ranks(links, links[:0]))
    assert math.isnan(metrics["hit@1"])


def test_by_hand() -> None:
    # tied ranks between places miss the cut
    ranks = np.array([1.0, 1.0, 1.5, 5.0, 5.5, 10.0, 10.5, 100.0])
    assert ranking_metrics(ranks) == pytest.approx(
        {
            "hit@1": 2 / 8,
            "hit@5": 4 / 8,
            "hit@10": 6 / 8,
            "mrr": (2 + 1 / 1.5 + 1 / 5 + 1 / 5.5 + 1 / 10 + 1 / 10.5 + 1 / 100) / 8,
            "mr": 134.5 / 8,
        }
    )


def test_no_ranks_give_no_numbers() -> None:
    metrics = ranking_metrics(np.zeros(0))
    assert list(metrics) == ["hit@1", "hit@5", "hit@10", "mrr", "mr"]
    assert all(math.isnan(value) for value in metrics.values())


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
    in_all = ranking_metrics(ranks.in_all)
    assert both_pools(ranks) == {
        **ranking_metrics(ranks.in_pool),
        "all_targets": in_all,
    }
    matched = Ranks(
        in_pool=np.array([1.0, np.inf, 1.0]), in_all=np.array([1.0, np.inf, 1.0])
    )
    assert matched_metrics(matched, 2 / 5)["hit@1"] == pytest.approx(2 / 5)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([1.0, 2.0, 2.5, 7.0])), max_size=8
    ),
)
def test_other_right_targets_do_not_count(rows: list[tuple[int, float]]) -> None:
    links = np.array(
        [(source, place) for place, (source, _) in enumerate(rows)]
    ).reshape(-1, 2)
    values = np.array([rank for _, rank in rows])
    found = filtered(Ranks(values, values + 1), links).in_pool
    for place, (source, rank) in enumerate(rows):
        others = [
            one
            for other, (owner, one) in enumerate(rows)
            if owner == source and other != place
        ]
        before = (
            sum(one < rank for one in others) + sum(one == rank for one in others) / 2
        )
        assert found[place] == rank - before
