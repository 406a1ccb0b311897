"""When a turn ends, and from which weights training continues."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from emea.data.protocol import Visible
from emea.encoders.objective import Objective
from emea.fit.alignment_module import AlignmentModule
from emea.fit.lightning_trainer import HookCallback
from emea.fit.self_training import SelfTraining
from emea.fit.step_block import LabelDataModule
from emea.fit.training_parts import FitStopping
from emea.matching.similarity import Cosine

from .small_fits import fit_by, plain_trainer

Modules = Callable[..., AlignmentModule]
Visibles = Callable[..., Visible]
Fit = Callable[..., LabelDataModule]


class Scripted(Objective):
    """Counts steps in a weight, three to an epoch."""

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        return -encoder.rows[0, 0]  # type: ignore[index,return-value,operator]

    def steps_per_epoch(self, num_links: int) -> int:
        return 3


class ScriptedStopping(FitStopping):
    """Returns the given hits, and records the number of steps of the model."""

    def __init__(self, hits: Sequence[float], **settings: int) -> None:
        super().__init__(np.array([[0, 0]]), Cosine(), **settings)
        self.hits = list(hits)
        self.seen: list[int] = []

    def measured(self, module: AlignmentModule) -> tuple[float, float]:
        self.seen.append(module.num_steps_done)
        return self.hits.pop(0), 0.0


@pytest.fixture
def counting(make_module: Modules) -> AlignmentModule:
    """A module whose first weight is the number of its steps."""
    module = make_module(Scripted())
    module._optimizer_makers = [lambda weights: torch.optim.SGD(weights, lr=1.0)]
    module.encoder.rows.data[0, 0] = 0
    return module


@pytest.mark.parametrize("block_size", [1, 2, 4, 50])
@pytest.mark.parametrize(
    ("hits", "seen", "best"),
    [
        ([0.1, 0.3, 0.2, 0.3], [6, 12, 18, 24], 12),  # an equal is no new best
        ([0.4, 0.1, 0.5, 0.2, 0.4], [6, 12, 18, 24, 30], 18),  # counted in a row
        ([0.0, 0.0, 0.0], [6, 12, 18], 6),
        (
            [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
            [6, 12, 18, 24, 30, 33],
            33,
        ),  # never: all 11 epochs
        (
            [0.1, 0.2, 0.3, 0.4, 0.5, 0.2],
            [6, 12, 18, 24, 30, 33],
            30,
        ),  # the end is looked at
    ],
)
def test_a_turn_ends_after_patience_and_keeps_the_best(
    block_size: int,
    hits: list[float],
    seen: list[int],
    best: int,
    counting: AlignmentModule,
    make_visible: Visibles,
    fit: Fit,
) -> None:
    stopping = ScriptedStopping(hits, every=2, patience=2)
    fit(counting, make_visible(), 11, [stopping], check_every=2, block_size=block_size)
    assert stopping.seen == seen
    assert counting.encoder.rows[0, 0].item() == best
    assert counting.num_steps_done == seen[-1]
    assert round(counting.num_epochs_done) == seen[-1] // 3


def test_nothing_is_looked_at_before_the_start(
    counting: AlignmentModule, make_visible: Visibles, fit: Fit
) -> None:
    stopping = ScriptedStopping([0.2, 0.1, 0.1], every=2, patience=2, start=4)
    fit(counting, make_visible(), 20, [stopping], check_every=2)
    assert stopping.seen == [18, 24, 30]
    assert counting.encoder.rows[0, 0].item() == 18


def test_weights_come_back_in_place(
    counting: AlignmentModule, make_visible: Visibles, fit: Fit
) -> None:
    address = counting.encoder.rows.data_ptr()
    stopping = ScriptedStopping([0.5, 0.1], every=1, patience=1)
    fit(counting, make_visible(), 4, [stopping], check_every=1)
    assert counting.encoder.rows[0, 0].item() == 3
    assert counting.encoder.rows.data_ptr() == address


def test_every_turn_starts_from_the_best(
    counting: AlignmentModule, make_visible: Visibles, fit: Fit
) -> None:
    weights = []

    class Noting(SelfTraining):
        """Notes the weights that labels are mined with."""

        def mined(self, module: AlignmentModule, labels: Any) -> Any:
            weights.append(module.encoder.rows[0, 0].item())
            return super().mined(module, labels)

    visible = make_visible()
    stopping = ScriptedStopping([0.9, 0.1, 0.2, 0.1, 0.1, 0.3], every=1, patience=1)
    training = Noting(visible, Cosine(), turns=2, epochs_per_turn=2)
    fit(counting, visible, 5, [stopping, training], num_turns=2, check_every=1)
    # turns of 2 epochs each were trained; the best stood after 1, 1 and 2
    assert weights == [3, 6]
    assert counting.encoder.rows[0, 0].item() == 12
    assert counting.num_steps_done == 3 * 6


def test_hits_are_those_of_the_validation_links(
    make_module: Modules, make_visible: Visibles
) -> None:
    module = make_module()
    validation = make_visible().validation
    source, target = (rows.detach().clone() for rows in module.embeddings())
    target[[2, 8]] = 3 * source[[2, 3]]  # two of three links become nearest
    module.encoder.rows.data = torch.cat([source, target])
    hit, mrr = FitStopping(validation, Cosine()).measured(module)
    assert hit == pytest.approx(2 / 3)
    assert 2 / 3 < mrr < 1


def test_between_equal_hits_mrr_decides(
    counting: AlignmentModule, make_visible: Visibles, fit: Fit
) -> None:
    class Rising(FitStopping):
        def measured(self, module: AlignmentModule) -> tuple[float, float]:
            return 0.0, module.num_steps_done / 100

    stopping = Rising(make_visible().validation, Cosine(), every=1, patience=1)
    fit(counting, make_visible(), 5, [stopping], check_every=1)
    assert counting.num_steps_done == 15


@pytest.mark.gpu
def test_a_captured_step_continues_from_the_best_weights(
    counting: AlignmentModule, make_visible: Visibles
) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    visible = make_visible()
    data = LabelDataModule(visible.train, 14, block_size=50, check_every=4)
    data.plan(12, 3)
    stopping = ScriptedStopping([0.5, 0.1, 0.6, 0.7], every=4, patience=1)
    training = SelfTraining(visible, Cosine(), turns=1, epochs_per_turn=8)
    trainer = plain_trainer(
        max_epochs=2,
        reload_dataloaders_every_n_epochs=1,
        accelerator="gpu",
        callbacks=[HookCallback([stopping, training])],
    )
    fit_by(trainer, counting, data)
    assert counting.encoder.rows[0, 0].item() == 12 + 24
