"""Tiny fits: what carries over between them, what does not, and how they fail."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from emea.data.arrays import IntArray
from emea.encoders.joint_graph import join_graphs
from emea.encoders.objective import Objective
from emea.encoders.rrea import RREA, MarginObjective
from emea.fit.alignment_module import AlignmentModule
from emea.fit.optimisation_step import OptimisationStep
from emea.fit.step_block import LabelDataModule

from .small_fits import fit_by, plain_trainer

RMSPROP = partial(torch.optim.RMSprop, lr=0.005, alpha=0.9, eps=1e-7)
LINKS = np.array([[0, 0], [1, 1], [2, 2]])


class Linked(Objective):
    """A loss without random draws: squared distance of the links, shifted."""

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        rows = encoder()
        return (rows[links[:, 0]] - rows[links[:, 1]] - 0.1).square().mean()


class NotANumberFrom(Objective):
    """A loss that grows by a factor each step, and is no number from some step on."""

    def __init__(
        self, step: int, growth: float = 1.0, value: float = float("nan")
    ) -> None:
        super().__init__()
        self.step = step
        self.growth = growth
        self.value = value
        self.num_calls = 0

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        self.num_calls += 1
        factor = (
            self.growth**self.num_calls if self.num_calls < self.step else self.value
        )
        return encoder().square().mean() * 0 + factor


class Watched(Linked):
    """Records its arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.attached: list[nn.Module] = []
        self.told: list[tuple[nn.Module, list[list[int]], int]] = []
        self.events: list[str] = []

    def attach(self, encoder: nn.Module) -> None:
        self.attached.append(encoder)

    def before_step(self, encoder: nn.Module, links: Tensor, step: int) -> None:
        self.told.append((encoder, links.tolist(), step))
        self.events.append("told")

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        self.events.append("step")
        return super().forward(encoder, links)


@pytest.fixture
def make_module(make_pair: Any) -> Callable[..., AlignmentModule]:
    """Makes a module around a small RREA; equal seeds, equal weights."""

    def make(
        objective: Objective, seed: int = 0, dropout: float = 0.0
    ) -> AlignmentModule:
        torch.manual_seed(seed)
        encoder = RREA(join_graphs(make_pair()), dim=4, dropout=dropout)
        return AlignmentModule(encoder, objective, RMSPROP, num_source=9, num_target=10)

    return make


def fit(
    module: AlignmentModule,
    num_steps: int,
    block_size: int,
    links: IntArray = LINKS,
    accelerator: str = "cpu",
) -> None:
    data = LabelDataModule(links, num_source=9, block_size=block_size)
    data.num_steps = num_steps
    fit_by(plain_trainer(accelerator=accelerator), module, data)


def weights_of(module: AlignmentModule) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.encoder.state_dict().items()}


def assert_equal(left: dict[str, Tensor], right: dict[str, Tensor]) -> None:
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert torch.equal(value, right[name]), name


def by_hand(module: AlignmentModule, fits: list[int]) -> dict[str, Tensor]:
    """Weights after fits of so many steps, each with an optimiser of its own."""
    links = torch.from_numpy(LINKS + np.array([0, 9]))
    for num_steps in fits:
        loss = partial(module.objective, module.encoder, links)
        step = OptimisationStep(loss, RMSPROP(module.encoder.parameters()))
        for _ in range(num_steps):
            step()
    return weights_of(module)


def test_fits_go_on_from_the_weights_with_a_fresh_optimiser(
    make_module: Callable[..., AlignmentModule],
) -> None:
    module = make_module(Linked())
    fit(module, num_steps=7, block_size=3)
    assert_equal(weights_of(module), by_hand(make_module(Linked()), [7]))
    fit(module, num_steps=5, block_size=3)
    assert_equal(weights_of(module), by_hand(make_module(Linked()), [7, 5]))
    assert module.num_steps_done == 12
    assert [loss.step for loss in module.losses] == [3, 6, 7, 10, 12]
    assert {loss.metric for loss in module.losses} == {"loss"}
    assert module.losses[-1].value < module.losses[0].value


@pytest.mark.parametrize("block_size", [1, 2, 50])
def test_objective_is_notified_before_each_step(
    make_module: Callable[..., AlignmentModule], block_size: int
) -> None:
    objective = Watched()
    module = make_module(objective)
    assert objective.attached == [module.encoder]
    fit(module, num_steps=3, block_size=block_size)
    fit(module, num_steps=2, block_size=block_size, links=np.array([[4, 5]]))
    first = [(module.encoder, [[0, 9], [1, 10], [2, 11]], step) for step in range(3)]
    second = [(module.encoder, [[4, 14]], step) for step in range(2)]
    assert objective.told == first + second
    assert objective.events == ["told", "step"] * 5
    assert objective.attached == [module.encoder]


@pytest.mark.parametrize("block_size", [1, 2, 50])
def test_blocks_do_not_change_the_result(
    make_module: Callable[..., AlignmentModule], block_size: int
) -> None:
    results = []
    for size in (3, block_size):
        module = make_module(MarginObjective(), dropout=0.3)
        torch.manual_seed(1)
        fit(module, num_steps=4, block_size=size)
        results.append(weights_of(module))
    assert_equal(*results)


def test_same_seed_gives_identical_weights(
    make_module: Callable[..., AlignmentModule],
) -> None:
    results = []
    for seed in (1, 1, 2):
        module = make_module(MarginObjective(), dropout=0.3)
        torch.manual_seed(seed)
        fit(module, num_steps=7, block_size=3)
        results.append(weights_of(module))
    assert_equal(results[0], results[1])
    assert not torch.equal(results[0]["entities"], results[2]["entities"])


@pytest.mark.parametrize("first_bad", [1, 3, 4, 7])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_nan_loss_stops_the_fit_and_reports_the_step(
    make_module: Callable[..., AlignmentModule], first_bad: int, value: float
) -> None:
    module = make_module(NotANumberFrom(first_bad, value=value))
    with pytest.raises(
        FloatingPointError, match=f"The loss became {value} at step {first_bad}"
    ):
        fit(module, num_steps=7, block_size=3)
    assert [loss.step for loss in module.losses] == [
        end for end in (3, 6) if end < first_bad
    ]


@pytest.mark.parametrize(
    ("first_bad", "growth", "cause"),
    [
        (
            1,
            1.0,
            r"step 1, its first step\. A smaller learning rate .* settings of model\.objective",
        ),
        (6, 10.0, r"step 6 after 1e\+03, 1e\+04, 1e\+05\. A smaller learning"),
    ],
)
def test_losses_before_it_tell_the_cause(
    make_module: Callable[..., AlignmentModule],
    first_bad: int,
    growth: float,
    cause: str,
) -> None:
    with pytest.raises(FloatingPointError, match=cause):
        fit(make_module(NotANumberFrom(first_bad, growth)), num_steps=7, block_size=3)


def test_fit_after_a_failed_one_starts_afresh(
    make_module: Callable[..., AlignmentModule],
) -> None:
    module = make_module(NotANumberFrom(1))
    start = weights_of(module)
    with pytest.raises(FloatingPointError):
        fit(module, num_steps=2, block_size=1)
    module.encoder.load_state_dict(start)
    module.objective = Linked()
    fit(module, num_steps=2, block_size=1)
    assert_equal(weights_of(module), by_hand(make_module(Linked()), [2]))


@pytest.mark.parametrize("training", [True, False])
def test_embeddings_are_deterministic_and_leave_the_mode(
    make_module: Callable[..., AlignmentModule], training: bool
) -> None:
    module = make_module(MarginObjective(), dropout=0.5)
    module.train(training)
    source, target = module.embeddings()
    again = module.embeddings()
    assert torch.equal(source, again[0])
    assert torch.equal(target, again[1])
    assert source.shape == (9, 24)
    assert target.shape == (10, 24)
    assert not source.requires_grad
    assert module.encoder.training is training
    assert module.encoder.layers.training is training
    module.encoder.eval()
    assert torch.equal(torch.cat([source, target]), module.encoder())


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
def test_cuda_graph_fits_on_other_links_are_eager_ones(
    make_module: Callable[..., AlignmentModule],
) -> None:
    module, eager = make_module(Linked()), make_module(Linked())
    eager._cuda_graph = False
    for links in (LINKS, LINKS[:2], np.stack([np.arange(9)] * 2, axis=1), LINKS):
        for one in (module, eager):
            fit(one, 9, block_size=4, links=links, accelerator="gpu")
    module.graph_memory.release()
    for name, value in weights_of(module).items():
        expected = eager.encoder.state_dict()[name]
        torch.testing.assert_close(value.cpu(), expected.cpu(), rtol=1e-3, atol=1e-4)
