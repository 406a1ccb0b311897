"""The margin loss against a loop over the same random draws."""

import functools

import pytest
import torch
from torch import Tensor, nn

from emea.encoders import margin_objective
from emea.encoders.margin_objective import MarginObjective
from emea.encoders.objective import drawn_links


class Table(nn.Module):
    """An encoder that is a table of embeddings."""

    def __init__(self, num_entities: int, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randn(num_entities, 3, dtype=torch.float64, generator=generator)
        self.rows = nn.Parameter(rows)

    def forward(self) -> Tensor:
        return self.rows


def looped_loss(
    rows: Tensor, links: Tensor, size: int, margin: float, keep_order: bool = False
) -> Tensor:
    """The loss pair by pair, drawing in the objective's order."""
    if keep_order:
        order = torch.arange(len(links)).roll(-int(torch.randint(len(links), (1,))))
    else:
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
@pytest.mark.parametrize("keep_order", [False, True])
def test_loss_and_gradient(
    batch_size: int | None, margin: float, keep_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # links keep their order on a GPU
    draw = functools.partial(drawn_links, keep_order=keep_order)
    monkeypatch.setattr(margin_objective, "drawn_links", lambda *given: draw(*given[:3]))
    encoder, twin = Table(10), Table(10)
    torch.manual_seed(5)
    loss = MarginObjective(margin, batch_size)(encoder, LINKS)
    torch.manual_seed(5)
    expected = looped_loss(twin.rows, LINKS, batch_size or 10, margin, keep_order)
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


def test_weighted_links_count_by_their_places() -> None:
    encoder, twin = Table(10), Table(10)
    weights = torch.tensor([1.0, 0.25, 0.0, 0.5])
    objective = MarginObjective(margin=2.0)
    objective.weigh(weights)
    torch.manual_seed(3)
    loss = objective(encoder, LINKS)
    torch.manual_seed(3)
    picked = drawn_links(LINKS, 10, weights)
    false_source, false_target = torch.randint(10, (2, 10))
    rows = twin.rows
    expected = rows.new_zeros(())
    for i, (source, target) in enumerate(LINKS[picked].tolist()):
        near = (rows[source] - rows[target]).abs().sum()
        for a, b in ((source, false_target[i]), (false_source[i], target)):
            expected = expected + torch.relu(2.0 + near - (rows[a] - rows[b]).abs().sum()) / 10
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-12)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(encoder.rows.grad, twin.rows.grad, rtol=0, atol=1e-12)
