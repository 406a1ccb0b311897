"""A model whose rows are its weights, and small fits of it."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.encoders.objective import Objective
from emea.fit.alignment_module import AlignmentModule
from emea.fit.fit_hook import FitHook
from emea.fit.lightning_trainer import HookCallback
from emea.fit.step_block import LabelDataModule

from .small_fits import Rows, fit_by, plain_trainer

NUM_SOURCE, NUM_TARGET = 14, 11


class Drifting(Objective):
    """Pulls linked rows together; so many steps an epoch per ten links."""

    def __init__(self) -> None:
        super().__init__()
        self.num_calls = 0

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        self.num_calls += 1
        rows = encoder()
        return (rows[links[:, 0]] - rows[links[:, 1]]).square().mean()

    def steps_per_epoch(self, num_links: int) -> int:
        return 1 + num_links // 10


Fit = Callable[..., LabelDataModule]


@pytest.fixture
def make_visible() -> Callable[..., Visible]:
    """Two training links, three validation links and what a test changes of the rest."""

    def make(**changes: IntArray | None) -> Visible:
        train = np.array([[0, 3], [5, 1]])
        validation = np.array([[2, 2], [3, 8], [9, 9]])
        return Visible(
            train, validation, validation, train, None, None, None, False, **changes
        )

    return make


@pytest.fixture
def make_module() -> Callable[..., AlignmentModule]:
    """Makes a module around given rows."""

    def make(objective: nn.Module | None = None, lr: float = 0.05) -> AlignmentModule:
        torch.manual_seed(0)
        rows, made = Rows(NUM_SOURCE + NUM_TARGET, 5), objective or Drifting()
        optimizer = partial(torch.optim.RMSprop, lr=lr)
        return AlignmentModule(
            rows, made, optimizer, num_source=NUM_SOURCE, num_target=NUM_TARGET
        )  # type: ignore[arg-type]

    return make


@pytest.fixture
def fit() -> Fit:
    """Fits a module in turns with hooks."""

    def run(
        module: AlignmentModule,
        visible: Visible,
        num_epochs: int,
        hooks: list[FitHook],
        num_turns: int = 0,
        check_every: int | None = None,
        block_size: int = 3,
    ) -> LabelDataModule:
        data = LabelDataModule(visible.train, NUM_SOURCE, block_size, check_every)
        data.plan(num_epochs, module.steps_per_epoch(len(data.links)))
        trainer = plain_trainer(
            max_epochs=1 + num_turns,
            reload_dataloaders_every_n_epochs=1,
            callbacks=[HookCallback(hooks)],
        )
        fit_by(trainer, module, data)
        return data

    return run
