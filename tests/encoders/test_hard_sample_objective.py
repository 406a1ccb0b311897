"""Hard sample mining against a loop over links and entities."""

import math
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from emea.encoders import hard_sample_objective
from emea.encoders.hard_sample_objective import HardSampleObjective, hard_sample_losses
from emea.fit.optimisation_step import GraphedStep, OptimisationStep

NUM_ENTITIES = 30
LINKS = torch.stack([torch.arange(7), torch.tensor([15, 29, 17, 18, 16, 20, 21])], dim=1)


class Table(nn.Module):
    """An encoder that is a table of embeddings."""

    def __init__(self, num_entities: int = NUM_ENTITIES, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randn(num_entities, 5, dtype=torch.float64, generator=generator)
        self.rows = nn.Parameter(rows)

    def forward(self) -> Tensor:
        return self.rows


def looped_loss(rows: Tensor, links: Tensor, margin: float, scale: float, shift: float) -> Tensor:
    """The loss link by link and entity by entity."""
    total = rows.new_zeros(())
    for source, target in links.tolist():
        near = (rows[source] - rows[target]).square().sum()
        for seen_from in (source, target):
            violations = []
            for entity in range(len(rows)):
                far = (rows[seen_from] - rows[entity]).square().sum()
                own = entity in (source, target)
                violations.append(rows.new_zeros(()) if own else near - far + margin)
            values = torch.stack(violations)
            mean = values.detach().mean()
            deviation = values.detach().sub(mean).square().mean().sqrt()
            total = total + torch.logsumexp(scale * (values - mean) / deviation + shift, dim=0)
    return total / len(links)


def value_and_gradient(loss: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    return loss.detach(), torch.autograd.grad(loss, rows)[0]


@pytest.mark.parametrize("per_block", [1, 100, 2**25])
@pytest.mark.parametrize("settings", [(1.0, 30.0, 10.0), (3.0, 2.0, 0.0), (0.0, 0.5, -4.0)])
def test_loss_and_gradient(
    settings: tuple[float, float, float],
    per_block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hard_sample_objective, "VALUES_PER_BLOCK", per_block)
    encoder = Table()
    found = value_and_gradient(HardSampleObjective(*settings)(encoder, LINKS), encoder.rows)
    wanted = value_and_gradient(looped_loss(encoder.rows, LINKS, *settings), encoder.rows)
    assert wanted[1].abs().max() > 0.1
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


def test_reference_settings_are_the_default() -> None:
    encoder = Table()
    loss = HardSampleObjective()(encoder, LINKS)
    torch.testing.assert_close(loss, looped_loss(encoder.rows, LINKS, 1.0, 30.0, 10.0))


def test_an_entity_in_several_pairs_gathers_their_gradients() -> None:
    links = torch.tensor([[0, 15], [0, 16], [1, 15], [0, 15]])
    encoder = Table()
    found = value_and_gradient(HardSampleObjective()(encoder, links), encoder.rows)
    wanted = value_and_gradient(looped_loss(encoder.rows, links, 1.0, 30.0, 10.0), encoder.rows)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


def test_single_precision_is_near() -> None:
    table = Table(400).rows
    anchors, partners = torch.arange(50), torch.arange(200, 250)
    single = table.detach().float().requires_grad_()
    wanted = value_and_gradient(hard_sample_losses(table, anchors, partners, 1, 30), table)
    found = value_and_gradient(hard_sample_losses(single, anchors, partners, 1, 30), single)
    scale = float(wanted[1].abs().max())
    torch.testing.assert_close(found[0].double(), wanted[0], rtol=1e-5, atol=0)
    torch.testing.assert_close(found[1].double(), wanted[1], rtol=0, atol=1e-4 * scale)


def test_identical_rows_keep_the_loss_finite() -> None:
    rows = torch.ones(20, 3, requires_grad=True)
    loss = hard_sample_losses(rows, torch.tensor([0]), torch.tensor([10]), 0.0, 30.0)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(math.log(20))
    assert rows.grad is not None
    assert rows.grad.isfinite().all()


def test_no_more_than_a_block_of_distances_exists(
    monkeypatch: pytest.MonkeyPatch, largest_output: Any
) -> None:
    monkeypatch.setattr(hard_sample_objective, "VALUES_PER_BLOCK", 2000)
    encoder = Table(300)
    links = torch.stack([torch.arange(100), torch.arange(100) + 150], dim=1)
    with largest_output() as sizes:
        HardSampleObjective()(encoder, links).backward()
    assert sizes.largest <= 2000 < 300 * 100


@pytest.mark.parametrize(
    ("num_links", "num_steps", "size"),
    [(1, 1, 1), (7, 1, 7), (10, 1, 10), (11, 2, 6), (25, 3, 9), (30, 3, 10)],
)
def test_batches_of_an_epoch_are_of_one_size(
    num_links: int, num_steps: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Tensor] = []

    def spy(rows: Tensor, anchors: Tensor, partners: Tensor, *rest: float) -> Tensor:
        drawn.append(torch.stack([anchors, partners], dim=1))
        return rows.sum()

    monkeypatch.setattr(hard_sample_objective, "hard_sample_losses", spy)
    objective = HardSampleObjective(batch_size=10)
    assert objective.steps_per_epoch(num_links) == num_steps
    links = torch.stack([torch.arange(num_links), torch.arange(num_links) + 100], dim=1)
    torch.manual_seed(0)
    for _ in range(200):
        objective(Table(200), links)
    for pairs in drawn:
        assert len(pairs) == 2 * size
        assert len(set(pairs[:, 0].tolist())) == 2 * size
        assert (pairs[:size, 1] - pairs[:size, 0] == 100).all()
        assert torch.equal(pairs[size:], pairs[:size].flip(1))
    seen = Counter(link for pairs in drawn for link in pairs[:size, 0].tolist())
    expected = 200 * size / num_links
    assert set(seen) == set(range(num_links))
    assert max(seen.values()) - expected <= 5 * math.sqrt(expected)


def test_links_come_together() -> None:
    encoder = Table()
    step = OptimisationStep(
        lambda: HardSampleObjective()(encoder, LINKS),
        torch.optim.RMSprop(encoder.parameters(), lr=0.01),
    )
    for _ in range(200):
        step()
    distances = torch.cdist(encoder.rows, encoder.rows).fill_diagonal_(math.inf)
    assert torch.equal(distances[LINKS[:, 0]].argmin(1), LINKS[:, 1])
    assert torch.equal(distances[LINKS[:, 1]].argmin(1), LINKS[:, 0])


@pytest.mark.gpu
def test_cuda_against_double_precision(cuda: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard_sample_objective, "VALUES_PER_BLOCK", 2000)
    exact = Table(400).rows
    single = exact.detach().float().to(cuda).requires_grad_()
    pairs = torch.arange(50), torch.arange(200, 250)
    wanted = value_and_gradient(hard_sample_losses(exact, *pairs, 1.0, 30.0), exact)
    on_cuda = (ids.to(cuda) for ids in pairs)
    found = value_and_gradient(hard_sample_losses(single, *on_cuda, 1.0, 30.0), single)
    scale = float(wanted[1].abs().max())
    torch.testing.assert_close(found[0].double().cpu(), wanted[0], rtol=1e-5, atol=0)
    torch.testing.assert_close(found[1].double().cpu(), wanted[1], rtol=0, atol=1e-4 * scale)


@pytest.mark.gpu
def test_steps_can_be_captured(cuda: torch.device) -> None:
    losses = []
    for graphed in (False, True):
        encoder = Table().to(cuda)
        links = LINKS.to(cuda)
        optimizer = torch.optim.RMSprop(encoder.parameters(), lr=0.005)
        # a batch of all links: the same in any order
        step = OptimisationStep(lambda e=encoder, k=links: HardSampleObjective()(e, k), optimizer)
        run = GraphedStep(step) if graphed else step
        losses.append([float(run()) for _ in range(10)])
    assert losses[0][-1] < losses[0][0]
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)


def test_next_to_nothing_is_nothing_on_a_cpu() -> None:
    """Subnormal weights are what made a step on a CPU ten times as long."""
    generator = torch.Generator().manual_seed(0)
    values = 100 * torch.randn(20, 4000, generator=generator)
    ids = torch.arange(20)
    hard_sample_objective._turn_into_weights(
        values, hard_sample_objective._Pairs(ids, ids + 20), scale=30.0
    )
    sizes = values.abs()
    assert (sizes[sizes > 0] > torch.finfo(torch.float32).tiny * 1e8).all()
    assert (sizes == 0).any() and (sizes > 0).sum() > 100
