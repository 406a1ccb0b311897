"""Realistic ranks against sorted lists, ties included."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from emea.data.arrays import IntArray
from emea.evaluation.all_counts import rank_counts
from emea.evaluation.ranks import link_ranks, realistic_ranks
from emea.matching import similarity as similarity_module
from emea.matching.similarity import Similarity

with_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=[1, 60, 2**26], ids=["row by row", "few rows", "all rows"])
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setitem(similarity_module.BLOCK_BYTES, "cpu", request.param)
    return int(request.param)


def from_scores(scores: Tensor) -> Similarity:
    """A similarity with exactly these scores."""
    num_source, num_target = scores.shape
    return Similarity(
        source=scores,
        target=torch.eye(num_target),
        source_offset=scores.new_zeros(num_source),
        target_offset=scores.new_zeros(num_target),
    )


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


@pytest.mark.usefixtures("block_bytes")
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


@pytest.mark.usefixtures("block_bytes")
@with_fixture
@given(tables_with_links())
def test_ranks_of_the_other_direction(drawn: tuple[Tensor, IntArray]) -> None:
    scores, links = drawn
    ranks = link_ranks(from_scores(scores).reversed(), links[:, ::-1])
    for index, (source, target) in enumerate(links.tolist()):
        column = scores[:, target].tolist()
        pool = [column[other] for other in links[:, 0]]
        assert ranks.in_all[index] == looped_rank(column[source], column)
        assert ranks.in_pool[index] == looped_rank(column[source], pool)


def test_ranks_are_double_precision_arrays() -> None:
    ranks = link_ranks(from_scores(torch.eye(3)), np.array([[0, 0], [1, 2]]))
    assert ranks.in_pool.dtype == ranks.in_all.dtype == np.float64
    assert ranks.in_all.tolist() == [1, 2.5]
    assert ranks.in_pool.tolist() == [1, 1.5]


def test_all_scores_tied_give_the_middle_rank() -> None:
    scores = torch.zeros(1, 7)
    assert realistic_ranks(*rank_counts(scores, scores[:, :1])).tolist() == [4]


def test_names_of_the_entities_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.integers(0, 3, (8, 9)).astype(np.float32))
    links = np.stack([rng.permutation(8)[:5], rng.permutation(9)[:5]], axis=1)
    new_source, new_target = rng.permutation(8), rng.permutation(9)
    renamed = torch.empty_like(scores)
    renamed[new_source[:, None], new_target] = scores
    renamed_links = np.stack([new_source[links[:, 0]], new_target[links[:, 1]]], axis=1)
    ranks = link_ranks(from_scores(scores), links)
    again = link_ranks(from_scores(renamed), renamed_links)
    assert ranks.in_pool.tolist() == again.in_pool.tolist()
    assert ranks.in_all.tolist() == again.in_all.tolist()
