"""Fits of one member of an ensemble, or of several side by side."""

import json
from functools import partial
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from emea.encoders.objective import Ensemble, Objective
from emea.errors import ConfigError, DivergedError
from emea.fit.alignment_module import AlignmentModule, Loss
from emea.fit.step_block import LabelDataModule, Labels

from .small_fits import Rows, fit_members


class Distance(Objective):
    """The mean squared distance of linked entities, over so many steps per epoch."""

    def __init__(self, num_steps: int = 1) -> None:
        super().__init__()
        self.num_steps = num_steps
        self.attached: nn.Module | None = None

    def attach(self, encoder: nn.Module) -> None:
        self.attached = encoder

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        rows = encoder()
        loss: Tensor = (rows[links[:, 0]] - rows[links[:, 1]]).square().mean()
        return loss

    def steps_per_epoch(self, num_links: int) -> int:
        return self.num_steps


def ensemble_of(
    members: list[Rows],
    objectives: list[Any],
    optimizers: Any = torch.optim.SGD,
    **given: Any,
) -> AlignmentModule:
    """A module of these members between 2 and 3 entities; one optimiser is that of all members."""
    makers = optimizers if isinstance(optimizers, list) else [optimizers] * len(members)
    both = Ensemble(members), nn.ModuleList(objectives)
    return AlignmentModule(*both, makers, num_source=2, num_target=3, **given)


def test_a_step_changes_the_active_member_only() -> None:
    module = ensemble_of([Rows(5, 3), Rows(5, 3)], [Distance(1), Distance(2)])
    links = torch.tensor([[0, 2], [1, 3]])
    before = [member.rows.detach().clone() for member in module.encoder.members]
    module.active_members = (1,)
    assert module.is_last_member
    assert module.steps_per_epoch(len(links)) == 2
    module.new_step([Labels(links)], module.configure_optimizers())()
    after = [member.rows.detach() for member in module.encoder.members]
    assert torch.equal(before[0], after[0])
    assert not torch.equal(before[1], after[1])
    module.active_members = (0,)
    assert not module.is_last_member
    assert module.steps_per_epoch(len(links)) == 1
    assert module.steps_per_epoch(len(links), member=1) == 2


def test_each_objective_gets_its_own_member() -> None:
    module = ensemble_of([Rows(5, 3), Rows(5, 4)], [Distance(), Distance()])
    for objective, member in zip(module.objective, module.encoder.members, strict=True):
        assert objective.attached is member
    fresh, objective = Rows(5, 4), Distance()
    module.renew_member(1, fresh, objective)
    assert module.encoder.members[1] is fresh and objective.attached is fresh
    assert module.encoder.members[0] is not fresh


def test_a_member_with_a_wrong_number_of_rows_is_named() -> None:
    module = ensemble_of([Rows(5, 3), Rows(4, 3)], [Distance(), Distance()])
    fault = (
        r"^Rows\.forward\(\) must return .*, but it returned a tensor of shape \[4, 3\]"
    )
    with pytest.raises(ConfigError, match=fault):
        module.embeddings()


def test_each_member_with_weights_needs_an_optimizer() -> None:
    with pytest.raises(ConfigError, match="Rows has weights to train"):
        members, objectives = [Rows(5, 3), Rows(5, 3)], [Distance(), Distance()]
        ensemble_of(members, objectives, [torch.optim.SGD, None])


class Noisy(Distance):
    """Adds random numbers to the embeddings, on the CPU's generator."""

    def __init__(self) -> None:
        super().__init__()
        self.prepared: list[tuple[nn.Module, int]] = []

    def before_step(self, encoder: nn.Module, links: Tensor, step: int) -> None:
        self.prepared.append((encoder, step))
        self.scale = float(torch.rand(()))

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        rows = encoder() + self.scale * torch.randn_like(encoder())
        weights = (
            torch.ones(len(links)) if self.link_weights is None else self.link_weights
        )
        distances = (rows[links[:, 0]] - rows[links[:, 1]]).square().sum(1)
        return (weights * distances).mean()


ADAM = partial(torch.optim.Adam, lr=0.01)
LINKS = [np.array([[0, 0], [1, 2]]), np.array([[1, 1]]), np.array([[0, 2], [1, 0]])]
WEIGHTS = [torch.tensor([1.0, 0.3]), None, torch.tensor([0.2, 0.1])]


SEED = 7


class SeedFirstBlock(pl.Callback):
    """Sets the seed after Lightning has drawn numbers for its own use."""

    def on_train_batch_start(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        batch: Any,
        batch_idx: int,
    ) -> None:
        if batch_idx == 0:
            torch.manual_seed(SEED)


def noisy_module() -> AlignmentModule:
    torch.manual_seed(0)
    members = [Rows(5, width) for width in (3, 4, 3)]
    return ensemble_of(members, [Noisy() for _ in members], ADAM)


def data_of(own_links: bool, block_size: int = 3) -> LabelDataModule:
    data = LabelDataModule(LINKS[0], num_source=2, block_size=block_size)
    if own_links:
        data.relabel(list(zip(LINKS, WEIGHTS, strict=True)))
    return data


@pytest.mark.parametrize("own_links", [False, True])
@pytest.mark.parametrize("members", [(0, 1, 2), (1, 2), (1,)])
def test_a_joint_fit_alternates_the_steps_of_its_members(
    members: tuple[int, ...], own_links: bool
) -> None:
    module, data = noisy_module(), data_of(own_links)
    fit_members(module, data, members, 8, callbacks=[SeedFirstBlock()])

    twin, labels = noisy_module(), []
    for member in range(3):
        links = LINKS[member if own_links else 0] + np.array([0, 2])
        labels.append(torch.from_numpy(links))
        twin.objective[member].weigh(WEIGHTS[member] if own_links else None)
    encoders, objectives = twin.encoder.members, twin.objective
    optimizers = {member: ADAM(encoders[member].parameters()) for member in members}
    losses: dict[int, list[float]] = {member: [] for member in members}
    torch.manual_seed(SEED)
    for step in range(8):
        for member in members:
            objectives[member].before_step(encoders[member], labels[member], step)
        for member in members:
            optimizers[member].zero_grad()
            loss = objectives[member](encoders[member], labels[member])
            loss.backward()
            optimizers[member].step()
            losses[member].append(float(loss.detach()))

    for found, expected in zip(module.encoder.members, encoders, strict=True):
        assert torch.equal(found.rows, expected.rows)
    for member in members:
        steps = [(module.encoder.members[member], step) for step in range(8)]
        assert module.objective[member].prepared == steps
    # counted as if the members ran each block one after the other
    ends = [losses[member][end - 1] for end in (3, 6, 8) for member in members]
    sizes = [size for size in (3, 3, 2) for _ in members]
    names = [f"loss/encoder_{member + 1}" for _ in (3, 6, 8) for member in members]
    expected = list(zip(np.cumsum(sizes).tolist(), ends, names, strict=True))
    assert module.losses == expected
    assert module.num_steps_done == 8 * len(members)
    assert module.num_epochs_done == pytest.approx(8 * len(members))
    assert module.is_last_member is (members[-1] == 2)


class Diverging(Distance):
    """Returns given losses."""

    def __init__(self, *losses: float) -> None:
        super().__init__()
        self.losses = iter(losses)

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        return encoder().sum() * 0 + next(self.losses)


def of_losses(*losses: list[float]) -> AlignmentModule:
    """Encoders with these losses."""
    return ensemble_of(
        [Rows(5, 3) for _ in losses], [Diverging(*of_one) for of_one in losses]
    )


NAN = float("nan")
HIGH = [100.0] * 10


@pytest.mark.parametrize(
    ("losses", "fits", "expected"),
    [
        ((HIGH, [1, 2, 3, 40, NAN, 6]), [((0, 1), 6)], r"step 10 after 2, 3, 40\."),
        ((HIGH, [NAN]), [((0, 1), 6)], "step 2, its first step"),
        ((HIGH, [NAN]), [((0,), 3), ((1,), 3)], "step 4, its first step"),
        # encoders 1 and 3 are trained before it
        (
            (HIGH, [1, 2, 1, NAN], HIGH),
            [((0, 1, 2), 2), ((0,), 2), ((1, 2), 3)],
            r"step 11 after 1, 2, 1\.",
        ),
    ],
)
def test_the_encoder_that_diverged_is_named_with_its_own_losses(
    losses: tuple[list[float], ...],
    fits: list[tuple[tuple[int, ...], int]],
    expected: str,
) -> None:
    module, data = of_losses(*losses), data_of(own_links=False, block_size=1)
    with pytest.raises(
        DivergedError, match=f"The loss of encoder 2 became nan at {expected}"
    ):
        for members, num_epochs in fits:
            fit_members(module, data, members, num_epochs)


def test_an_encoder_that_diverges_after_resuming_is_shown_with_its_losses_before() -> (
    None
):
    module, data = of_losses([1, 2, 3], HIGH), data_of(own_links=False, block_size=1)
    fit_members(module, data, (0, 1), 3)
    resumed = of_losses([40, NAN], HIGH)
    resumed.num_steps_done = module.num_steps_done
    resumed.losses = [Loss(*one) for one in json.loads(json.dumps(module.losses))]
    assert resumed.losses == module.losses
    expected = r"encoder 1 became nan at step 9 after 2, 3, 40\."
    with pytest.raises(DivergedError, match=expected):
        fit_members(resumed, data, (0, 1), 2)


def test_an_ensemble_of_one_encoder_has_a_plain_curve() -> None:
    module, data = of_losses([1, 2]), data_of(own_links=False, block_size=1)
    fit_members(module, data, (0,), 2)
    assert module.losses == [(1, 1.0, "loss"), (2, 2.0, "loss")]


class Scaled(Distance):
    """Has a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        return self.scale.square() * super().forward(encoder, links)


def test_parameters_of_objectives_are_trained() -> None:
    torch.manual_seed(0)
    objectives = [Scaled(), Scaled(), Distance()]
    module = ensemble_of([Rows(5, 3) for _ in objectives], objectives, ADAM)
    data = data_of(own_links=False)
    for members, is_trained in (((1, 2), [False, True]), ((0,), [True, True])):
        fit_members(module, data, members, 4)
        assert [one.scale.item() != 1 for one in objectives[:2]] == is_trained


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
def test_a_joint_cuda_graph_fit_is_an_eager_one() -> None:
    weights = []
    for cuda_graph in (True, False):
        torch.manual_seed(0)
        members = [Rows(5, 3) for _ in range(3)]
        objectives = [Distance() for _ in members]
        module = ensemble_of(members, objectives, ADAM, cuda_graph=cuda_graph)
        for active in ((0, 1, 2), (1, 2), (0,), (0, 1, 2)):
            fit_members(module, data_of(own_links=True), active, 9, "cuda")
        module.graph_memory.release()
        weights.append(
            torch.cat([member.rows.detach().cpu() for member in members], dim=1)
        )
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-4)
