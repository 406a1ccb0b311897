"""The sampling of links, and the embeddings of ensembles."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.encoders.objective import Ensemble, drawn_links

from ..fit.small_fits import Rows

DRAWN = torch.tensor([[0, 5], [1, 6], [2, 7], [4, 9]])


@given(num_links=st.integers(1, 9), size=st.integers(1, 25), seed=st.integers(0, 99))
def test_each_link_occurs_as_often_as_any_other(
    num_links: int, size: int, seed: int
) -> None:
    torch.manual_seed(seed)
    links = torch.stack([torch.arange(num_links), torch.arange(num_links) + 100], dim=1)
    for picked in (drawn_links(links, size), drawn_links(links, size, keep_order=True)):
        counts = Counter(picked.tolist())
        often = [counts[link] for link in range(num_links)]
        assert sum(often) == size
        assert max(often) - min(often) <= 1


def test_links_in_their_order_start_anywhere() -> None:
    torch.manual_seed(0)
    batches = {
        tuple(drawn_links(DRAWN, 6, keep_order=True).tolist()) for _ in range(60)
    }
    assert batches == {
        tuple((start + place) % 4 for place in range(6)) for start in range(4)
    }
    weights = torch.tensor([1.0, 2.0, 0.0, 3.0])
    counts: Counter[int] = Counter()
    for _ in range(600):
        picked = drawn_links(DRAWN, 3, weights, keep_order=True)
        assert (picked.diff() >= 0).all()
        counts.update(picked.tolist())
    assert counts.total() == 1800
    for link, expected in enumerate((300, 600, 0, 900)):
        assert abs(counts[link] - expected) <= 60


def test_more_links_than_fit_into_a_batch_are_drawn_at_random() -> None:
    torch.manual_seed(0)
    links = torch.arange(40).reshape(20, 2)
    batches = [drawn_links(links, 5).tolist() for _ in range(60)]
    assert all(len(set(batch)) == 5 for batch in batches)
    seen = Counter(link for batch in batches for link in batch)
    assert set(seen) == set(range(20))
    assert max(seen.values()) < 35  # 15 expected of 60


def test_order_is_random_where_links_repeat() -> None:
    torch.manual_seed(0)
    orders = {tuple(drawn_links(DRAWN, 8).tolist()) for _ in range(30)}
    assert len(orders) > 5


@given(
    weights=st.lists(st.floats(0, 1), min_size=1, max_size=9).filter(
        lambda w: sum(w) > 0.01
    ),
    size=st.integers(1, 40),
    seed=st.integers(0, 99),
    keep_order=st.booleans(),
)
def test_places_follow_the_weights(
    weights: list[float], size: int, seed: int, keep_order: bool
) -> None:
    torch.manual_seed(seed)
    links = torch.arange(2 * len(weights)).reshape(-1, 2)
    counts = Counter(
        drawn_links(links, size, torch.tensor(weights), keep_order).tolist()
    )
    assert sum(counts.values()) == size
    for link, weight in enumerate(weights):
        share = size * weight / sum(weights)
        assert share - 1 - 1e-4 < counts[link] < share + 1 + 1e-4


def test_rounding_draws_no_link_without_a_weight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    below_one = torch.ones(1).nextafter(torch.zeros(1))
    monkeypatch.setattr(torch, "rand", lambda *_, **__: below_one)
    for size in (2, 100, 40_000):
        picked = drawn_links(
            DRAWN, size, torch.tensor([1.0, 1.0, 0.0, 0.0]), keep_order=True
        )
        assert picked.max() == 1


def test_which_links_a_small_weighted_batch_holds_is_random() -> None:
    torch.manual_seed(0)
    links = torch.arange(80).reshape(40, 2)
    weights = torch.linspace(0.1, 1, 40)
    batches = {
        tuple(sorted(drawn_links(links, 5, weights).tolist())) for _ in range(40)
    }
    assert len(batches) > 35


@pytest.mark.gpu
@pytest.mark.parametrize("size", [1, 750, 5000])
def test_a_random_order_on_a_gpu(cuda: torch.device, size: int) -> None:
    links = torch.zeros(size, 2, dtype=torch.int64, device=cuda)
    first, second = (drawn_links(links, size) for _ in range(2))
    assert torch.equal(first.sort().values, torch.arange(size, device=cuda))
    assert size == 1 or not torch.equal(first, second)


def test_cosines_are_weighted_means_of_the_members() -> None:
    torch.manual_seed(0)
    members = Rows(5, 4), Rows(5, 7)
    ensemble = Ensemble(members)
    ensemble.weights.copy_(torch.tensor([0.2, 0.8]))
    joined = ensemble().detach()
    assert joined.shape == (5, 11)
    cosines = []
    for member in members:
        rows = member.rows.detach()
        lengths = rows.norm(dim=1)
        cosines.append(rows @ rows.T / lengths / lengths[:, None])
    expected = 0.2 * cosines[0] + 0.8 * cosines[1]
    torch.testing.assert_close(joined @ joined.T, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(joined.norm(dim=1), torch.ones(5))
