"""Fits of one member of an ensemble, or of several side by side."""

import json
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from emea.encoders.objective import (
    Ensemble,
    EnsembleObjective,
    Objective,
)
from emea.errors import ConfigError, DivergedError
from emea.fit import fitting
from emea.fit.alignment_module import AlignmentModule
from emea.fit.lightning_trainer import LightningSettings
from emea.fit.step_block import LabelDataModule, Labels


def fit(
    module: AlignmentModule, data: LabelDataModule, num_epochs: int, device: str, callbacks: Any
) -> None:
    lightning = LightningSettings()
    parts: Any = SimpleNamespace(module=module, data=data, stopping=None, lightning=lightning)
    fitting.fit(parts, num_epochs, torch.device(device), callbacks)


class Rows(nn.Module):
    """An encoder that returns a parameter."""

    def __init__(self, num_entities: int, width: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(num_entities, width))

    def forward(self) -> Tensor:
        return self.rows


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


def module_of(*widths: int) -> AlignmentModule:
    members = [Rows(5, width) for width in widths]
    objectives = [Distance(number + 1) for number in range(len(widths))]
    return AlignmentModule(
        Ensemble(members),
        EnsembleObjective(objectives),
        [torch.optim.SGD] * len(widths),
        num_source=2,
        num_target=3,
    )


def test_a_step_changes_the_active_member_only() -> None:
    module = module_of(3, 3)
    links = torch.tensor([[0, 2], [1, 3]])
    before = [member.rows.detach().clone() for member in module.encoder.members]
    module.activate([1])
    assert module.is_last_member
    assert module.steps_per_epoch(len(links)) == 2
    module.new_step([Labels(links)], module.configure_optimizers())()
    after = [member.rows.detach() for member in module.encoder.members]
    assert torch.equal(before[0], after[0])
    assert not torch.equal(before[1], after[1])
    module.activate([0])
    assert not module.is_last_member
    assert module.steps_per_epoch(len(links)) == 1
    assert module.steps_per_epoch(len(links), member=1) == 2


def test_each_objective_gets_its_own_member() -> None:
    module = module_of(3, 4)
    for objective, member in zip(module.objective.objectives, module.encoder.members, strict=True):
        assert objective.attached is member
    fresh, objective = Rows(5, 4), Distance()
    module.renew_member(1, fresh, objective)
    assert module.encoder.members[1] is fresh and objective.attached is fresh
    assert module.encoder.members[0] is not fresh


def test_a_member_with_a_wrong_number_of_rows_is_named() -> None:
    module = AlignmentModule(
        Ensemble([Rows(5, 3), Rows(4, 3)]),
        EnsembleObjective([Distance(), Distance()]),
        [torch.optim.SGD, torch.optim.SGD],
        num_source=2,
        num_target=3,
    )
    fault = r"^Rows\.forward\(\) must return .*, but it returned a tensor of shape \[4, 3\]"
    with pytest.raises(ConfigError, match=fault):
        module.embeddings()


def test_each_member_with_weights_needs_an_optimizer() -> None:
    with pytest.raises(ConfigError, match="Rows has weights to train"):
        AlignmentModule(
            Ensemble([Rows(5, 3), Rows(5, 3)]),
            EnsembleObjective([Distance(), Distance()]),
            [torch.optim.SGD, None],
            num_source=2,
            num_target=3,
        )


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
        weights = torch.ones(len(links)) if self.link_weights is None else self.link_weights
        distances = (rows[links[:, 0]] - rows[links[:, 1]]).square().sum(1)
        return (weights * distances).mean()


ADAM = partial(torch.optim.Adam, lr=0.01)
LINKS = [np.array([[0, 0], [1, 2]]), np.array([[1, 1]]), np.array([[0, 2], [1, 0]])]
WEIGHTS = [torch.tensor([1.0, 0.3]), None, torch.tensor([0.2, 0.1])]


SEED = 7


class SeedFirstBlock(pl.Callback):
    """Sets the seed after Lightning has drawn numbers for its own use."""

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        if batch_idx == 0:
            torch.manual_seed(SEED)


def noisy_module() -> AlignmentModule:
    torch.manual_seed(0)
    members = [Rows(5, width) for width in (3, 4, 3)]
    objectives = [Noisy() for _ in members]
    return AlignmentModule(Ensemble(members), EnsembleObjective(objectives), [ADAM] * 3, 2, 3)


def data_of(own_links: bool, block_size: int = 3) -> LabelDataModule:
    data = LabelDataModule(LINKS[0], num_source=2, block_size=block_size)
    if own_links:
        data.relabel_members(list(zip(LINKS, WEIGHTS, strict=True)))
    return data


@pytest.mark.parametrize("own_links", [False, True])
@pytest.mark.parametrize("members", [(0, 1, 2), (1, 2), (1,)])
def test_a_joint_fit_alternates_the_steps_of_its_members(
    members: tuple[int, ...], own_links: bool
) -> None:
    module, data = noisy_module(), data_of(own_links)
    module.activate(members)
    data.activate(members)
    fit(module, data, 8, "cpu", [SeedFirstBlock()])

    twin, labels = noisy_module(), []
    for member in range(3):
        links = LINKS[member if own_links else 0] + np.array([0, 2])
        labels.append(torch.from_numpy(links))
        twin.objective.objectives[member].weigh(WEIGHTS[member] if own_links else None)
    encoders, objectives = twin.encoder.members, twin.objective.objectives
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
        assert module.objective.objectives[member].prepared == steps
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
    members = [Rows(5, 3) for _ in losses]
    objectives = EnsembleObjective([Diverging(*of_one) for of_one in losses])
    return AlignmentModule(Ensemble(members), objectives, [torch.optim.SGD] * len(losses), 2, 3)


NAN = float("nan")
HIGH = [100.0] * 10


@pytest.mark.parametrize(
    ("losses", "fits", "expected"),
    [
        (
            (HIGH, [1, 2, 3, 40, NAN, 6]),
            [((0, 1), 6)],
            "step 10 after 2, 3, 40: training diverged",
        ),
        ((HIGH, [NAN]), [((0, 1), 6)], "step 2, its first step"),
        ((HIGH, [NAN]), [((0,), 3), ((1,), 3)], "step 4, its first step"),
        # encoders 1 and 3 are trained before it
        (
            (HIGH, [1, 2, 1, NAN], HIGH),
            [((0, 1, 2), 2), ((0,), 2), ((1, 2), 3)],
            "step 11 after 1, 2, 1, which look normal",
        ),
    ],
)
def test_the_encoder_that_diverged_is_named_with_its_own_losses(
    losses: tuple[list[float], ...], fits: list[tuple[tuple[int, ...], int]], expected: str
) -> None:
    module, data = of_losses(*losses), data_of(own_links=False, block_size=1)
    with pytest.raises(DivergedError, match=f"The loss of encoder 2 became nan at {expected}"):
        for members, num_epochs in fits:
            module.activate(members)
            data.activate(members)
            fit(module, data, num_epochs, "cpu", [])


def test_an_encoder_that_diverges_after_resuming_is_shown_with_its_losses_before() -> None:
    module, data = of_losses([1, 2, 3], HIGH), data_of(own_links=False, block_size=1)
    for one in (module, data):
        one.activate((0, 1))
    fit(module, data, 3, "cpu", [])
    resumed = of_losses([40, NAN], HIGH)
    resumed.num_steps_done = module.num_steps_done
    resumed.restore_losses(json.loads(json.dumps(module.losses)))
    assert resumed.losses == module.losses
    resumed.activate((0, 1))
    expected = "encoder 1 became nan at step 9 after 2, 3, 40: training diverged"
    with pytest.raises(DivergedError, match=expected):
        fit(resumed, data, 2, "cpu", [])


def test_an_ensemble_of_one_encoder_has_a_plain_curve() -> None:
    module, data = of_losses([1, 2]), data_of(own_links=False, block_size=1)
    fit(module, data, 2, "cpu", [])
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
    encoders = Ensemble([Rows(5, 3) for _ in objectives])
    module = AlignmentModule(encoders, EnsembleObjective(objectives), [ADAM] * 3, 2, 3)
    data = data_of(own_links=False)
    for members, is_trained in (((1, 2), [False, True]), ((0,), [True, True])):
        module.activate(members)
        data.activate(members)
        fit(module, data, 4, "cpu", [])
        assert [one.scale.item() != 1 for one in objectives[:2]] == is_trained


class OneElement(Distance):
    """Returns a loss of shape ``[1]``, which a backward pass accepts, too."""

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        return super().forward(encoder, links).reshape(1).double()


@pytest.mark.parametrize("members", [(0,), (0, 1)])
def test_a_loss_may_have_one_element(members: tuple[int, ...]) -> None:
    objectives = EnsembleObjective([OneElement(), Distance()])
    encoders = Ensemble([Rows(5, 3), Rows(5, 3)])
    module = AlignmentModule(encoders, objectives, [torch.optim.SGD] * 2, 2, 3)
    data = data_of(own_links=False)
    module.activate(members)
    data.activate(members)
    fit(module, data, 4, "cpu", [])
    assert module.num_steps_done == 4 * len(members)


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
def test_a_joint_cuda_graph_fit_is_an_eager_one() -> None:
    weights = []
    for cuda_graph in (True, False):
        torch.manual_seed(0)
        members = [Rows(5, 3) for _ in range(3)]
        objectives = EnsembleObjective([Distance() for _ in members])
        module = AlignmentModule(Ensemble(members), objectives, [ADAM] * 3, 2, 3, cuda_graph)
        for active in ((0, 1, 2), (1, 2), (0,), (0, 1, 2)):
            data = data_of(own_links=True)
            module.activate(active)
            data.activate(active)
            fit(module, data, 9, "cuda", [])
        module.release_graphs()
        weights.append(torch.cat([member.rows.detach().cpu() for member in members], dim=1))
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-4)
