"""The margin loss against a loop over the same random draws."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from emea.encoders.margin_objective import MarginObjective, random_batch


class Table(nn.Module):
    """An encoder that is a table of embeddings."""

    def __init__(self, num_entities: int, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randn(num_entities, 3, dtype=torch.float64, generator=generator)
        self.rows = nn.Parameter(rows)

    def forward(self) -> Tensor:
        return self.rows


def looped_loss(rows: Tensor, links: Tensor, size: int, margin: float) -> Tensor:
    """The loss pair by pair, drawing in the objective's order."""
    order = torch.randperm(len(links))
    false_source, false_target = torch.randint(len(rows), (2, size))
    total = rows.new_zeros(())
    for i in range(size):
        source, target = links[order[i % len(links)]]
        near = (rows[source] - rows[target]).abs().sum()
        far_target = (rows[source] - rows[false_target[i]]).abs().sum()
        far_source = (rows[false_source[i]] - rows[target]).abs().sum()
        total = total + torch.relu(margin + near - far_target)
        total = total + torch.relu(margin + near - far_source)
    return total / size


LINKS = torch.tensor([[0, 5], [1, 6], [2, 7], [4, 9]])


@pytest.mark.parametrize("batch_size", [None, 1, 3, 4, 7, 8])
@pytest.mark.parametrize("margin", [0.1, 3.0])
def test_loss_and_gradient(batch_size: int | None, margin: float) -> None:
    encoder, twin = Table(10), Table(10)
    torch.manual_seed(5)
    loss = MarginObjective(margin, batch_size)(encoder, LINKS)
    torch.manual_seed(5)
    expected = looped_loss(twin.rows, LINKS, batch_size or 10, margin)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-12)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(encoder.rows.grad, twin.rows.grad, rtol=0, atol=1e-12)


def test_reference_settings_are_the_default() -> None:
    encoder = Table(10)
    torch.manual_seed(1)
    loss = MarginObjective()(encoder, LINKS)
    torch.manual_seed(1)
    torch.testing.assert_close(loss, looped_loss(encoder.rows, LINKS, 10, 3.0))


def test_negatives_come_from_both_graphs() -> None:
    encoder = Table(10)
    MarginObjective(margin=1e6, batch_size=500)(encoder, LINKS).backward()
    assert encoder.rows.grad is not None
    unlinked = encoder.rows.grad[[3, 8]]
    assert (unlinked != 0).all()


@given(num_links=st.integers(1, 9), size=st.integers(1, 25), seed=st.integers(0, 99))
def test_each_link_stands_as_often_as_any_other(num_links: int, size: int, seed: int) -> None:
    torch.manual_seed(seed)
    links = torch.stack([torch.arange(num_links), torch.arange(num_links) + 100], dim=1)
    source, target = random_batch(links, size)
    assert len(source) == len(target) == size
    assert (target - source == 100).all()
    counts = Counter(source.tolist())
    often = [counts[link] for link in range(num_links)]
    assert max(often) - min(often) <= 1


def test_more_links_than_fit_into_a_batch_are_drawn_at_random() -> None:
    torch.manual_seed(0)
    links = torch.arange(40).reshape(20, 2)
    batches = [random_batch(links, 5)[0].tolist() for _ in range(60)]
    assert all(len(set(batch)) == 5 for batch in batches)
    seen = Counter(link for batch in batches for link in batch)
    assert set(seen) == set(range(0, 40, 2))
    assert max(seen.values()) < 35  # 15 expected of 60


def test_order_is_random_where_links_repeat() -> None:
    torch.manual_seed(0)
    orders = {tuple(random_batch(LINKS, 8)[0].tolist()) for _ in range(30)}
    assert len(orders) > 5
