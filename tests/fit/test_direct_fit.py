"""A fit without an optimiser gives the same with and without Lightning."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from emea.data.protocol import Visible
from emea.fit.alignment_module import AlignmentModule
from emea.fit.direct_fit import fit_directly
from emea.fit.fit_hook import FitHook, Turn
from emea.fit.lightning_settings import LightningSettings
from emea.fit.lightning_trainer import fit_with_lightning
from emea.fit.step_block import LabelDataModule, StepBlock

from .conftest import NUM_SOURCE, NUM_TARGET, Drifting
from .small_fits import Rows

CPU = torch.device("cpu")


class Recorder(FitHook):
    """Records each moment, and the random number that would be drawn next."""

    def __init__(self, over_after: int | None = None) -> None:
        self.over_after = over_after
        self.seen: list[tuple[Any, ...]] = []

    def record(self, *moment: Any) -> None:
        state = torch.get_rng_state()
        self.seen.append((*moment, torch.rand(()).item()))
        torch.set_rng_state(state)

    def on_turn_start(self, turn: Turn) -> None:
        self.record("turn starts", turn.is_last)

    def on_block_end(self, turn: Turn, block: StepBlock, is_last_block: bool) -> None:
        self.record("block", turn.module.num_steps_done, block.num_steps, is_last_block)
        turn.module.turn_is_over = turn.module.num_steps_done == self.over_after

    def on_turn_end(self, turn: Turn) -> None:
        self.record("turn ends", turn.is_last)
        turn.data.plan(4, 1)

    def on_training_end(self, module: AlignmentModule, data: LabelDataModule) -> None:
        self.record("training ends", module.num_epochs_done)


def by_lightning(
    module: AlignmentModule,
    data: LabelDataModule,
    device: torch.device,
    num_turns: int,
    hooks: Sequence[FitHook],
) -> None:
    fit_with_lightning(
        module, data, device, num_turns, hooks=hooks, added=LightningSettings()
    )


@pytest.mark.parametrize("num_turns", [1, 3])
@pytest.mark.parametrize("over_after", [None, 3])
def test_moments_and_random_numbers_are_those_of_lightning(
    num_turns: int, over_after: int | None, make_visible: Callable[..., Visible]
) -> None:
    results = []
    for fit in (fit_directly, by_lightning):
        torch.manual_seed(0)
        rows = Rows(NUM_SOURCE + NUM_TARGET, 5, is_trained=False)
        module = AlignmentModule(
            rows, Drifting(), None, num_source=NUM_SOURCE, num_target=NUM_TARGET
        )
        data = LabelDataModule(make_visible().train, NUM_SOURCE, block_size=3)
        recorder = Recorder(over_after)
        for _ in range(2):
            data.plan(7, 1)
            fit(module, data, CPU, num_turns, [recorder])
        results.append((recorder.seen, module.losses, torch.get_rng_state().tolist()))
    assert results[0] == results[1]
    assert len(results[0][0]) > 2 * (1 + 3 * num_turns)


def test_rows_are_only_fitted_by_lightning_if_they_are_trained(
    monkeypatch: pytest.MonkeyPatch, make_module: Callable[..., AlignmentModule]
) -> None:
    from types import SimpleNamespace

    from emea.fit import training_parts
    from emea.fit.training_parts import TrainingParts

    direct: list[AlignmentModule] = []
    monkeypatch.setattr(
        training_parts, "fit_directly", lambda module, *_: direct.append(module)
    )
    constant = Rows(NUM_SOURCE + NUM_TARGET, 5, is_trained=False)
    without = AlignmentModule(
        constant, Drifting(), None, num_source=NUM_SOURCE, num_target=NUM_TARGET
    )
    trained = make_module()
    for module in (without, trained):
        data = LabelDataModule(torch.tensor([[0, 3], [5, 1]]).numpy(), NUM_SOURCE)
        parts: Any = SimpleNamespace(
            module=module, data=data, stopping=None, lightning=LightningSettings()
        )
        TrainingParts.fit(parts, 2, CPU, [])
    assert direct == [without]
    assert trained.num_steps_done == 2
