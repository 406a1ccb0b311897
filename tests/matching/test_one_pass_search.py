"""Search in one pass: recall, exact scores, ties, and what must not change the result."""

import logging

import pytest
import torch
from torch import Tensor

from emea.errors import ConfigError
from emea.matching import best_pairs as pairs_module
from emea.matching.auto_search import AutoSearch
from emea.matching.best_pairs import best_pairs, has_fast_int8
from emea.matching.candidates import search_recall, top_candidates, warn_of_low_recall
from emea.matching.csls import CSLS
from emea.matching.one_pass_search import OnePassSearch
from emea.matching.search import ExactSearch
from emea.matching.similarity import Cosine

from .noisy_copies import noisy_copies


def unit_vectors(*sizes: int) -> tuple[Tensor, Tensor]:
    source, target = (
        torch.nn.functional.normalize(side) for side in noisy_copies(*sizes)
    )
    return source, target


@pytest.fixture(params=["int8", "float"])
def products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compare with 8-bit integers, if the processor has them, or in single precision."""
    if request.param == "int8" and not has_fast_int8():
        pytest.skip("the processor has no instructions for 8-bit integers")
    monkeypatch.setattr(pairs_module, "has_fast_int8", lambda: request.param == "int8")
    return request.param


@pytest.mark.parametrize("decoder", [Cosine, CSLS])
def test_a_shortlist_of_all_targets_is_exact(decoder: type, products: str) -> None:
    source, target = noisy_copies(60, 80)
    exact = decoder()(source, target)
    found = decoder(search=OnePassSearch(shortlist=80))(source, target)
    for one, other in ((exact, found), (exact.reversed(), found.reversed())):
        expected, actual = top_candidates(one, 7), top_candidates(other, 7)
        torch.testing.assert_close(actual.scores, expected.scores)
        assert torch.equal(actual.targets, expected.targets)


@pytest.mark.parametrize("decoder", [Cosine, CSLS])
def test_it_finds_most_neighbours_and_scores_them_exactly(
    decoder: type, products: str
) -> None:
    source, target = noisy_copies()
    similarity = decoder(search=OnePassSearch(shortlist=60))(source, target)
    for side in (similarity, similarity.reversed()):
        found = top_candidates(side, 10)
        assert search_recall(side, found.targets, 500) > 0.97
        rows = torch.arange(side.num_source).repeat_interleave(10)
        scores = side.of_pairs(rows, found.targets.flatten()).view(-1, 10)
        torch.testing.assert_close(found.scores, scores)


def test_products_in_single_precision_find_the_true_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pairs_module, "has_fast_int8", lambda: False)
    source, target = unit_vectors(300, 500)
    source[:10] *= -1  # some products are negative
    products = source.double() @ target.double().T
    of_source, of_target = best_pairs(source, target, (450, 8))
    assert torch.equal(
        of_source.sort(1).values, products.topk(450, dim=1).indices.sort(1).values
    )
    best = products.T.topk(8, dim=1).indices
    assert torch.equal(of_target.sort(1).values, best.sort(1).values)


@pytest.mark.usefixtures("each_kernels")
def test_threads_do_not_change_the_result(
    products: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs_module, "MIN_ROWS_PER_THREAD", 50)
    source, target = unit_vectors(300, 400)
    found = []
    for num_threads in (1, 2, 3):
        monkeypatch.setattr(
            pairs_module, "available_threads", lambda number=num_threads: number
        )
        found.append(
            [ids.sort(1).values for ids in best_pairs(source, target, (20, 20))]
        )
    assert all(
        torch.equal(*pair)
        for other in found[1:]
        for pair in zip(found[0], other, strict=True)
    )


def test_ids_do_not_change_the_result() -> None:
    source, target = noisy_copies()
    place = torch.randperm(len(target), generator=torch.Generator().manual_seed(1))
    plain = top_candidates(CSLS(search=OnePassSearch(60))(source, target), 10)
    moved = top_candidates(CSLS(search=OnePassSearch(60))(source, target[place]), 10)
    assert (plain.targets == place[moved.targets]).float().mean() > 0.999


def test_equal_targets_get_equal_scores() -> None:
    source, target = noisy_copies(200, 300)
    target = torch.cat([target, target[:50]])
    found = top_candidates(Cosine(OnePassSearch(60))(source, target), 2)
    assert torch.equal(found.scores[:50, 0], found.scores[:50, 1])


def test_zero_vectors_have_candidates_that_do_not_depend_on_ids() -> None:
    source, target = unit_vectors()
    source[[3, 500]] = 0
    columns, _ = OnePassSearch(shortlist=20)(source, target).source
    assert columns[3].unique().numel() == 20
    assert torch.equal(columns[3], columns[500])
    order = torch.randperm(len(target), generator=torch.Generator().manual_seed(1))
    moved, _ = OnePassSearch(shortlist=20)(source, target[order]).source
    assert torch.equal(order[moved[3]].sort().values, columns[3])


def test_a_shortlist_below_k_is_an_error() -> None:
    similarity = Cosine(OnePassSearch(shortlist=20))(*noisy_copies())
    with pytest.raises(
        ConfigError, match=r"search\.shortlist=20 is too short for 30 candidates"
    ):
        top_candidates(similarity, 30)


def test_auto_is_exact_below_its_bound_and_has_shortlists_above() -> None:
    source, target = noisy_copies(50, 200)
    assert AutoSearch(10_000)(source, target) is None
    exact = top_candidates(CSLS(search=ExactSearch())(source, target), 5)
    below = top_candidates(CSLS(search=AutoSearch(10_000))(source, target), 5)
    assert torch.equal(exact.targets, below.targets) and torch.equal(
        exact.scores, below.scores
    )
    assert AutoSearch(9_999)(source, target) is not None


def test_a_low_recall_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_of_low_recall(0.95)
        assert not caplog.records
        warn_of_low_recall(0.5)
    assert "finds only 50% of the best candidates" in caplog.text


def test_recall_counts_ties_for_the_last_place() -> None:
    similarity = Cosine()(
        torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]] * 3 + [[0.0, 1.0]])
    )
    assert search_recall(similarity, torch.tensor([[2]]), 1) == 1
    assert search_recall(similarity, torch.tensor([[2, 3]]), 1) == 0.5
