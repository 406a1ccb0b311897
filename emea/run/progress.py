"""A progress line on the terminal; nothing is shown where standard error is not a terminal."""

import logging
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytorch_lightning as pl
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from emea.encoders.step_block import StepBlock

TRAINING = "training"


class StepProgress(pl.Callback):
    """Shows the stage and its phase, optimisation steps over all fits, and the time left.

    The time left covers all phases: it comes from the time of a step so far, and from what each
    other phase took in the stage before. Until a phase was measured, the time left is only a
    lower bound, and says so.

    Args:
        num_steps: of the whole run.
        num_stages: fits that are still to come.
        phases: what follows each of them, in this order.
        console: where to show it; ``None``: standard error.
    """

    def __init__(
        self,
        num_steps: int,
        num_stages: int = 1,
        phases: Sequence[str] = (),
        console: Console | None = None,
    ) -> None:
        console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=14),  # so that all fits in 80 columns
            MofNCompleteColumn(),
            TextColumn("steps"),
            TimeElapsedColumn(),
            _TimeLeft(self),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(TRAINING, total=num_steps)
        self._stages_left = num_stages
        self._phases = (TRAINING, *phases)
        self._stage = ""
        self._phase = TRAINING
        self._since = time.monotonic()
        self._measured: dict[str, float] = {}
        self._trained_seconds = 0.0
        self._trained_steps = 0
        self._redirected: list[tuple[Any, Any]] = []

    def __enter__(self) -> "StepProgress":
        real = (sys.stderr, sys.stdout)
        self._progress.start()
        if not self._progress.disable:
            # a handler that keeps the stream it began with would write into the progress line
            for handler in logging.getLogger().handlers:
                if isinstance(handler, logging.StreamHandler) and handler.stream in real:
                    self._redirected.append((handler, handler.setStream(sys.stderr)))
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
        for handler, stream in self._redirected:
            if stream is not None:
                handler.setStream(stream)
        self._redirected = []

    def say(self, stage: str) -> None:
        """Name the stage that starts, with its training."""
        if self._stage:
            self._stages_left -= 1
        self._stage = stage
        self.phase(TRAINING)

    def phase(self, name: str) -> None:
        """Name the phase that starts; the one before is measured."""
        now = time.monotonic()
        if self._phase != TRAINING:
            self._measured[self._phase] = now - self._since
        self._phase, self._since = name, now
        described = name if not self._stage else f"{self._stage}: {name}"
        self._progress.update(self._task, description=described)

    def skip(self, num_steps: int) -> None:
        """Count steps as done that will not come, since training ended early."""
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
        assert isinstance(batch, StepBlock)
        now = time.monotonic()
        self._trained_seconds += now - self._since
        self._trained_steps += batch.num_steps
        self._since = now
        self._progress.advance(self._task, batch.num_steps)

    def left(self) -> tuple[float, bool]:
        """Seconds until the end, as far as they are known, and whether they cover every phase."""
        task = self._progress.tasks[self._task]
        steps = max(0.0, (task.total or 0.0) - task.completed)
        usual = dict(self._measured)
        if self._trained_steps:
            usual[TRAINING] = steps * self._trained_seconds / self._trained_steps
        current = self._phases.index(self._phase)
        seconds, is_whole = 0.0, True
        for index, name in enumerate(self._phases):
            # the steps of all stages count as one training
            times = bool(steps) if name == TRAINING else self._stages_left - (index < current)
            seconds += times * usual.get(name, 0.0)
            is_whole &= name in usual or not times
        in_phase = time.monotonic() - self._since
        return max(0.0, seconds - min(in_phase, usual.get(self._phase, 0.0))), is_whole


class _TimeLeft(ProgressColumn):
    """How long the run will take from now on, as far as that is known."""

    def __init__(self, progress: StepProgress) -> None:
        super().__init__()
        self._of = progress

    def render(self, task: Task) -> Text:
        """The time left; a lower bound where some phase was not measured yet."""
        seconds, is_whole = self._of.left()
        shown = f"{timedelta(seconds=int(seconds))} left"
        if not is_whole:
            shown = f">{shown}" if seconds >= 1 else "left: unknown"
        return Text(shown, style="progress.remaining")
