"""Search with faiss: recall, exact scores, ties, and what must not change the result."""

import logging
import sys

import pytest
import torch

from emea.errors import ConfigError
from emea.matching.candidates import search_recall, top_candidates, warn_of_low_recall
from emea.matching.csls import CSLS
from emea.matching.faiss_search import FaissSearch
from emea.matching.similarity import Cosine

from .noisy_copies import noisy_copies

pytest.importorskip("faiss")


@pytest.mark.parametrize("decoder", [Cosine, CSLS])
def test_a_shortlist_of_all_targets_is_exact(decoder: type) -> None:
    source, target = noisy_copies(60, 80)
    exact = decoder()(source, target)
    found = decoder(search=FaissSearch(shortlist=80))(source, target)
    for one, other in ((exact, found), (exact.reversed(), found.reversed())):
        expected, actual = top_candidates(one, 7), top_candidates(other, 7)
        torch.testing.assert_close(actual.scores, expected.scores)
        assert torch.equal(actual.targets, expected.targets)


@pytest.mark.parametrize("decoder", [Cosine, CSLS])
def test_it_finds_most_neighbours_and_scores_them_exactly(decoder: type) -> None:
    source, target = noisy_copies()
    similarity = decoder(search=FaissSearch(shortlist=60))(source, target)
    found = top_candidates(similarity, 10)
    assert 0.9 < search_recall(similarity, found.targets, 700) <= 1
    rows = torch.arange(700).repeat_interleave(10)
    scores = similarity.of_pairs(rows, found.targets.flatten()).view(700, 10)
    torch.testing.assert_close(found.scores, scores)
    short = decoder(search=FaissSearch(shortlist=12))(source, target)
    fewer = search_recall(short, top_candidates(short, 10).targets, 700)
    assert fewer < search_recall(similarity, found.targets, 700)


def test_ids_do_not_change_the_result() -> None:
    source, target = noisy_copies()
    place = torch.randperm(len(target), generator=torch.Generator().manual_seed(1))
    plain = top_candidates(CSLS(search=FaissSearch(60))(source, target), 10)
    moved = top_candidates(CSLS(search=FaissSearch(60))(source, target[place]), 10)
    same = plain.targets == place[moved.targets]
    assert same[:, 0].float().mean() > 0.99
    assert same.float().mean() > 0.9


def test_threads_do_not_change_the_result() -> None:
    source, target = noisy_copies()
    num_threads = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(top_candidates(Cosine(FaissSearch(60))(source, target), 10).targets)
    torch.set_num_threads(num_threads)
    assert (found[0] == found[1]).float().mean() > 0.99


def test_equal_targets_get_equal_scores() -> None:
    source, target = noisy_copies(200, 300)
    target = torch.cat([target, target[:50]])
    found = top_candidates(Cosine(FaissSearch(60))(source, target), 2)
    assert torch.equal(found.scores[:50, 0], found.scores[:50, 1])
    assert search_recall(Cosine()(source, target), found.targets, 200) > 0.98


def test_a_shortlist_below_k_is_an_error() -> None:
    similarity = Cosine(FaissSearch(shortlist=20))(*noisy_copies())
    with pytest.raises(ConfigError, match=r"search\.shortlist=20 is too short for 30 candidates"):
        top_candidates(similarity, 30)


def test_without_faiss_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ConfigError, match="pip install faiss-cpu"):
        FaissSearch()(*noisy_copies(20, 20))


def test_a_low_recall_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_of_low_recall(0.95)
        assert not caplog.records
        warn_of_low_recall(0.5)
    assert "finds only 50% of the best candidates" in caplog.text


def test_recall_counts_ties_for_the_last_place() -> None:
    similarity = Cosine()(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]] * 3 + [[0.0, 1.0]]))
    assert search_recall(similarity, torch.tensor([[2]]), 1) == 1
    assert search_recall(similarity, torch.tensor([[2, 3]]), 1) == 0.5


def test_zero_vectors_have_candidates_that_do_not_depend_on_ids() -> None:
    source, target = noisy_copies()
    source[[3, 500]] = 0
    lists = FaissSearch(shortlist=20).lists(source, target)
    assert int(lists.columns.min()) >= 0
    assert lists.columns[3].unique().numel() == 20
    assert torch.equal(lists.columns[3], lists.columns[500])
    order = torch.randperm(len(target), generator=torch.Generator().manual_seed(1))
    moved = FaissSearch(shortlist=20).lists(source, target[order])
    assert torch.equal(order[moved.columns[3]].sort().values, lists.columns[3])
