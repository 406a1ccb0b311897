"""A fit by Lightning: its module, its callback, its device and what it prints."""

import logging
import signal
import threading
import warnings
from collections.abc import Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning import Trainer
from pytorch_lightning.accelerators import CUDAAccelerator
from pytorch_lightning.strategies import SingleDeviceStrategy
from torch.utils.data import DataLoader

from emea.fit.alignment_module import AlignmentModule
from emea.fit.fit_hook import FitHook, Turn
from emea.fit.lightning_settings import LightningSettings
from emea.fit.step_block import LabelDataModule, StepBlock


class LightningAlignment(pl.LightningModule):
    """Lets Lightning train an `AlignmentModule`.

    One Lightning batch is a block of optimisation steps. Lightning's overhead of about a
    millisecond then occurs once per block, not once per step. One Lightning epoch is a turn: labels
    may change between turns, while weights and optimiser are kept.

    Args:
        module: The module. Callbacks can also use its attributes and methods on this object.
        data: Its labels.
        logs_losses: Whether each block's last loss goes through Lightning's ``log``, which costs
            about as much time as the rest of Lightning's work on a batch.
    """

    def __init__(
        self, module: AlignmentModule, data: LabelDataModule, logs_losses: bool = True
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.alignment = module
        self.data = data
        self.logs_losses = logs_losses

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of Lightning's module, or else of the module that it trains."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "alignment":
                raise
            return getattr(self.alignment, name)

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """Return a new optimiser for each active member that has parameters to train."""
        return self.alignment.configure_optimizers()

    def train_dataloader(self) -> DataLoader[StepBlock]:
        """Return the blocks of the next turn."""
        return self.data.blocks()

    def on_fit_start(self) -> None:
        """Set the step counter of the new Trainer to the steps of the run so far."""
        self._set_global_step()

    def on_fit_end(self) -> None:
        """Drop the step and the gradients."""
        self.alignment.end_fit()

    def on_train_epoch_start(self) -> None:
        """Drop the step of the last turn."""
        self.alignment.start_turn()

    def on_train_batch_start(self, batch: StepBlock, batch_idx: int) -> int | None:
        """Return -1 to make Lightning skip the rest of its epoch."""
        return -1 if self.alignment.turn_is_over else None

    def training_step(self, block: StepBlock, batch_idx: int) -> None:
        """Run a block of steps on the links of the block."""
        module = self.alignment
        module.run_block(block, self.trainer.optimizers)
        self._set_global_step()
        if not self.logs_losses:
            return
        for loss in module.losses[-len(module.active_members) :]:
            self.log(loss.metric, loss.value, batch_size=1)
        if self.trainer.loggers:
            # loggers use the value of "step" as the position of logged values
            self.log("step", float(module.num_steps_done), batch_size=1)

    def _set_global_step(self) -> None:
        """Set Lightning's ``global_step`` to the optimisation steps of the run.

        Lightning counts calls of its own optimiser wrapper. Steps do not use the wrapper: it
        costs time, and a step that is replayed as a CUDA graph does not call an optimiser.
        """
        progress = (
            self.trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress
        )
        progress.total.ready = progress.total.completed = self.alignment.num_steps_done


class HookCallback(pl.Callback):
    """Calls the hooks of a fit from Lightning.

    Args:
        hooks: Called in this order.
    """

    def __init__(self, hooks: Sequence[FitHook]) -> None:
        self.hooks = hooks

    def on_train_epoch_start(
        self, trainer: Trainer, pl_module: pl.LightningModule
    ) -> None:
        """Start a turn."""
        turn = _turn(trainer, pl_module)
        for hook in self.hooks:
            hook.on_turn_start(turn)

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """End a block."""
        turn = _turn(trainer, pl_module)
        for hook in self.hooks:
            hook.on_block_end(turn, batch, is_last_block=trainer.is_last_batch)

    def on_train_epoch_end(
        self, trainer: Trainer, pl_module: pl.LightningModule
    ) -> None:
        """End a turn."""
        turn = _turn(trainer, pl_module)
        for hook in self.hooks:
            hook.on_turn_end(turn)

    def on_train_end(self, trainer: Trainer, pl_module: pl.LightningModule) -> None:
        """End the training; Lightning calls ``on_fit_end`` after it has moved the model away."""
        assert isinstance(pl_module, LightningAlignment)
        for hook in self.hooks:
            hook.on_training_end(pl_module.alignment, pl_module.data)


def _turn(trainer: Trainer, pl_module: pl.LightningModule) -> Turn:
    assert isinstance(pl_module, LightningAlignment)
    is_last = trainer.current_epoch + 1 == trainer.max_epochs
    return Turn(pl_module.alignment, pl_module.data, is_last)


def fit_with_lightning(
    module: AlignmentModule,
    data: LabelDataModule,
    device: torch.device,
    num_turns: int,
    *,
    hooks: Sequence[FitHook],
    added: LightningSettings,
) -> None:
    """Run the turns of a fit with a new Lightning Trainer.

    A second ``fit`` of a Lightning Trainer would train nothing, so each fit has its own Trainer.

    Args:
        module: The module.
        data: The labels.
        device: The device to compute on.
        num_turns: Number of turns of the fit.
        hooks: Run at the moments of the fit, in this order.
        added: What the config adds to the Trainer.
    """
    quieten_lightning()
    trainer = added.trainer(
        [HookCallback(hooks), *added.callbacks],
        **placement(device),
        devices=1,
        max_epochs=num_turns,
        reload_dataloaders_every_n_epochs=1,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    # only callbacks or loggers of the config read what Lightning logs
    logs_losses = bool(added.callbacks or added.loggers)
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        trainer.fit(LightningAlignment(module, data, logs_losses))
    except SystemExit:
        # Lightning handles Ctrl-C with its own exit, which would look like a failure
        if trainer.interrupted:
            if threading.current_thread() is threading.main_thread():
                signal.signal(
                    signal.SIGINT, on_interrupt
                )  # Lightning disabled the handler
            raise KeyboardInterrupt from None
        raise


class ResidentStrategy(SingleDeviceStrategy):
    """Leaves the module on its device after a fit, because another fit follows.

    Lightning would copy weights, graph structure and optimiser state to the main memory, and the
    next fit would copy them back.
    """

    def teardown(self) -> None:
        """Release the state of the optimiser, which is used in one fit only."""
        for optimizer in self.optimizers:
            optimizer.state.clear()
        self.precision_plugin.teardown()
        assert self.accelerator is not None
        self.accelerator.teardown()
        self.checkpoint_io.teardown()


class ResidentAccelerator(CUDAAccelerator):
    """Keeps the device memory that torch has cached, because the next fit or search uses it.

    Lightning would return it to the driver, which waits for the device. torch itself returns cached
    memory when an allocation fails.
    """

    def setup(self, trainer: Trainer) -> None:
        """Set the variables of the process, as Lightning does."""
        self.set_nvidia_flags(trainer.local_rank)

    def teardown(self) -> None:
        """Keep the memory."""


def placement(device: torch.device) -> dict[str, object]:
    """Return the arguments of ``pl.Trainer`` that choose the device."""
    if device.type != "cuda":
        return {"accelerator": "cpu"}
    strategy = ResidentStrategy(torch.device("cuda", 0))
    return {"accelerator": ResidentAccelerator(), "strategy": strategy}


def quieten_lightning() -> None:
    """Suppress Lightning's hints about settings that a run uses on purpose."""
    for name in ("pytorch_lightning", "lightning", "lightning.pytorch"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (
        ".*does not have many workers.*",
        ".*treespec, LeafSpec.*",
        ".*GPU available.*",
    ):
        warnings.filterwarnings("ignore", message)
