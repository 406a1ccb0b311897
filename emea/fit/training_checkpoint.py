"""The callback that saves the state of an unfinished training."""

import logging
import time
from collections.abc import Callable
from typing import Any

import pytorch_lightning as pl

from emea.fit.alignment_module import AlignmentModule
from emea.fit.early_stopping import EarlyStopping
from emea.fit.step_block import LabelDataModule, StepBlock
from emea.fit.training_state import TurnState

logger = logging.getLogger(__name__)

SaveTurn = Callable[[TurnState], None]

COPY_SECONDS = 5.0
"""Minimum time between two copies of the state in memory; an interruption can lose this much."""

COPY_SHARE = 0.02
"""Maximum share of the training time spent on copies."""


class TrainingCheckpoint(pl.Callback):
    """Saves the state of a turn after a block, at intervals and when the run is interrupted.

    An interruption may happen in the middle of a block, where the state is not consistent, or after
    the training. The callback therefore keeps a copy of the state after an earlier block in memory
    and saves that copy. It must come after all callbacks that act on a block.

    Args:
        save: Writes a state to disk.
        every_seconds: Minimum time between two saved states.
        epochs_before: Epochs of the run at its last checkpoint, from which a resumed run starts.
        stopping: Early stopping of the fit, or ``None``.
        resumed: State from which the fit resumes; ``None`` means that it starts from scratch.
    """

    def __init__(
        self,
        save: SaveTurn,
        every_seconds: float,
        epochs_before: float,
        stopping: EarlyStopping | None = None,
        resumed: TurnState | None = None,
    ) -> None:
        self.save = save
        self.every_seconds = every_seconds
        self.stopping = stopping
        self.num_turns_before = 0 if resumed is None else resumed.turn
        self.num_blocks = 0
        self._resumed = resumed
        self._epochs_before = epochs_before
        self._last = time.monotonic()
        self._copy: TurnState | None = None
        self._next_copy = self._last + COPY_SECONDS

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clock, because loading the data is not part of the training."""
        self._last = time.monotonic()
        self._next_copy = self._last + COPY_SECONDS

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Count the blocks of the turn that are done."""
        self.num_blocks = self._resumed.num_blocks if self._resumed else 0

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Restore the saved state before the first remaining block.

        It cannot be restored earlier, because other callbacks reset their state at the start of a
        turn.
        """
        if self._resumed is None:
            return
        assert isinstance(pl_module, AlignmentModule) and isinstance(batch, StepBlock)
        self._resumed.restore(pl_module, batch.labels, self.stopping)
        self._resumed = None

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Save or copy the state if it is due, except after the last block of a turn."""
        assert isinstance(pl_module, AlignmentModule)
        self.num_blocks += 1
        now = time.monotonic()
        save_due = now - self._last >= self.every_seconds
        if trainer.is_last_batch or pl_module.turn_is_over:
            return
        if not save_due and now < self._next_copy:
            return
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        assert isinstance(data, LabelDataModule)
        turn = self.num_turns_before + trainer.current_epoch
        num_epochs = pl_module.num_epochs_done - self._epochs_before
        state = TurnState.of(pl_module, data, self.stopping, turn, self.num_blocks, num_epochs)
        if save_due:
            self.save(state)
            self._copy, self._last = None, time.monotonic()
            self._next_copy = self._last + COPY_SECONDS
        else:
            self._copy = state.copied()
            done = time.monotonic()
            self._next_copy = done + max(COPY_SECONDS, (done - now) / COPY_SHARE)

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Save the latest copy of the state if the run was interrupted."""
        if isinstance(exception, KeyboardInterrupt) and self._copy is not None:
            self.save(self._copy)
            logger.info("Saved the training state at step %d", self._copy.num_steps_done)
