"""Shows the progress of training and EM as one bar over all phases."""

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import pytorch_lightning as pl
from rich.console import Console
from rich.progress import (
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

TRAINING = "training"
BAR_WIDTH = 14  # so that a line fits into 80 columns


class StepProgress(pl.Callback):
    """Shows the stage and its phase, one bar over all phases, and the time left.

    The time left covers all phases: it is computed from the time of a step so far, and from what
    each other phase took in the stage before. Until every phase was measured, the time left is a
    lower bound and is shown as one. The bar shows the share of the estimated time that has passed.

    Args:
        num_steps: Number of steps of the whole run.
        num_stages: Number of remaining stages. The encoders of an ensemble belong to one stage.
        phases: Names of the phases that follow the training of a stage, in order.
        console: The console to show it on; ``None`` means standard error.
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
            _Bar(self),
            TimeElapsedColumn(),
            _TimeLeft(self),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(TRAINING, total=num_steps)
        self._num_stages = self._stages_left = num_stages
        self._started = time.monotonic()
        self._share = 0.0
        self._phases = (TRAINING, *phases)
        self._stage = ""
        self._phase = TRAINING
        self._since = time.monotonic()
        self._measured: dict[str, float] = {}
        self._trained_seconds = 0.0
        self._trained_steps = 0
        self._shown = ExitStack()

    def __enter__(self) -> "StepProgress":
        self._started = time.monotonic()
        self._shown.enter_context(lines_above(self._progress))
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    def say(self, stage: str) -> None:
        """Start a training and show its name; a stage ends when a phase follows its training."""
        if self._phase != TRAINING:
            self._stages_left -= 1
        self._stage = stage
        self.phase(TRAINING)

    def phase(self, name: str) -> None:
        """Start a phase and show its name; record the duration of the previous one."""
        now = time.monotonic()
        if self._phase != TRAINING:
            self._measured[self._phase] = now - self._since
        self._phase, self._since = name, now
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
        now = time.monotonic()
        self._trained_seconds += now - self._since
        self._trained_steps += batch.total_steps
        self._since = now
        self._progress.advance(self._task, batch.total_steps)

    def share(self) -> float:
        """Return the share of the estimated time that has passed; it never falls."""
        seconds, is_whole = self.left()
        elapsed = time.monotonic() - self._started
        share = elapsed / (elapsed + seconds) if elapsed + seconds > 0 else 0.0
        if not is_whole:  # if a part of the time left is unknown, count phases instead
            done = self._num_stages - self._stages_left
            in_stage = self._phases.index(self._phase) / len(self._phases)
            share = min(share, (done + in_stage) / self._num_stages)
        self._share = max(self._share, share)
        return self._share

    @property
    def num_steps_left(self) -> float:
        """Number of expected steps that are not done; negative if labels made epochs longer."""
        task = self._progress.tasks[self._task]
        return (task.total or 0.0) - task.completed

    def left(self) -> tuple[float, bool]:
        """Return the known seconds until the end, and whether they cover every phase."""
        steps = max(0.0, self.num_steps_left)
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


@contextmanager
def lines_above(progress: Progress) -> Iterator[None]:
    """Show a progress line, and write log lines above it."""
    real = (sys.stderr, sys.stdout)
    redirected = []
    progress.start()
    if not progress.disable:
        # a handler that keeps its first stream would write into the progress line
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream in real:
                redirected.append((handler, handler.setStream(sys.stderr)))
    try:
        yield
    finally:
        progress.stop()
        for handler, stream in redirected:
            if stream is not None:
                handler.setStream(stream)


class _Bar(ProgressColumn):
    """Shows the share of the estimated time that has passed as a bar and in percent."""

    def __init__(self, progress: StepProgress) -> None:
        super().__init__()
        self._of = progress

    def render(self, task: Task) -> Table:
        """Return the bar and the number."""
        share = self._of.share()
        grid = Table.grid(padding=(0, 1))
        grid.add_row(ProgressBar(total=1.0, completed=share, width=BAR_WIDTH), f"{share:4.0%}")
        return grid


class _TimeLeft(ProgressColumn):
    """Shows how long the run will still take, if that is known."""

    def __init__(self, progress: StepProgress) -> None:
        super().__init__()
        self._of = progress

    def render(self, task: Task) -> Text:
        """Return the time left, which is a lower bound until every phase was measured."""
        seconds, is_whole = self._of.left()
        shown = f"{timedelta(seconds=int(seconds))} left"
        if not is_whole:
            shown = f">{shown}" if seconds >= 1 else "left: unknown"
        return Text(shown, style="progress.remaining")
