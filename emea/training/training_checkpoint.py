"""Checkpoints in the midst of a long training, and going on from one."""

import time
from collections.abc import Callable
from typing import Any

import pytorch_lightning as pl

from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import LabelDataModule, StepBlock
from emea.training.early_stopping import EarlyStopping
from emea.training.turn_state import TurnState

SaveTurn = Callable[[TurnState], None]


class TrainingCheckpoint(pl.Callback):
    """Hands over the state of a turn after a block, once enough time has passed since the last.

    Comes after all callbacks that act on a block.

    Args:
        save: takes the state.
        every_seconds: least time between two of them.
        stopping: the early stopping of the fit; ``None``: it has none.
        resumed: from which the fit goes on; ``None``: it begins.
    """

    def __init__(
        self,
        save: SaveTurn,
        every_seconds: float,
        stopping: EarlyStopping | None = None,
        resumed: TurnState | None = None,
    ) -> None:
        self.save = save
        self.every_seconds = every_seconds
        self.stopping = stopping
        self.num_turns_before = 0 if resumed is None else resumed.turn
        self.num_blocks = 0
        self._resumed = resumed
        self._epochs_before = 0.0
        self._last = time.monotonic()

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Time counts from here: what is loaded before can be loaded again."""
        assert isinstance(pl_module, AlignmentModule)
        self._epochs_before = pl_module.num_epochs_done
        self._last = time.monotonic()

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """A turn begins, or what is left of it."""
        self.num_blocks = self._resumed.num_blocks if self._resumed else 0

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Before the first block that is left, take up what those before it had made.

        Not earlier: at the beginning of a turn everyone forgets the one before.
        """
        if self._resumed is None:
            return
        assert isinstance(pl_module, AlignmentModule) and isinstance(batch, StepBlock)
        self._resumed.restore(pl_module, batch.links, batch.weights, self.stopping)
        self._resumed = None

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Hand over the state where it is due; what ends a turn is for others to keep."""
        assert isinstance(pl_module, AlignmentModule)
        self.num_blocks += 1
        due = time.monotonic() - self._last >= self.every_seconds
        if not due or trainer.is_last_batch or pl_module.turn_is_over:
            return
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        assert isinstance(data, LabelDataModule)
        turn = self.num_turns_before + trainer.current_epoch
        num_epochs = pl_module.num_epochs_done - self._epochs_before
        self.save(TurnState.of(pl_module, data, self.stopping, turn, self.num_blocks, num_epochs))
        self._last = time.monotonic()
