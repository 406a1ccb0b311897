"""A progress line for whoever watches; silent where nobody does."""

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

from emea.encoders.step_block import StepBlock


class StepProgress(pl.Callback):
    """Shows optimisation steps over all fits of a run.

    Args:
        num_steps: of the whole run.
    """

    def __init__(self, num_steps: int) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("steps"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("training", total=num_steps)

    def __enter__(self) -> "StepProgress":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, description: str) -> None:
        """What the run is doing now."""
        self._progress.update(self._task, description=description)

    def skip(self, num_steps: int) -> None:
        """So many steps will not come: training ended early."""
        self._progress.advance(self._task, num_steps)

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """A block of steps is done."""
        assert isinstance(batch, StepBlock)
        self._progress.advance(self._task, batch.num_steps)
