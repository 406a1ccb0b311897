"""Shows the progress of training and EM in one line."""

from typing import Any

import pytorch_lightning as pl
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

TRAINING = "training"
BAR_WIDTH = 14  # so that a line fits into 80 columns


class StepProgress(pl.Callback):
    """Shows the stage and its phase, the optimisation steps, and the time left for them.

    Args:
        num_steps: Number of steps of the whole run.
        console: The console to show it on; ``None`` means standard error.
    """

    def __init__(self, num_steps: int, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(BAR_WIDTH),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(TRAINING, total=num_steps)
        self._stage = ""

    def __enter__(self) -> "StepProgress":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, stage: str) -> None:
        """Start a training and show its name."""
        self._stage = stage
        self.phase(TRAINING)

    def phase(self, name: str) -> None:
        """Show the name of a phase that starts."""
        shown = f"{self._stage}: {name}" if self._stage else name
        self._progress.update(self._task, description=shown)

    def skip(self, num_steps: int) -> None:
        """Count steps as done that were skipped because training ended early."""
        self._progress.advance(self._task, num_steps)

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Count a block of steps."""
        self._progress.advance(self._task, batch.total_steps)
