"""Shows the progress of training and EM: one line on a terminal, otherwise lines in the log."""

from collections.abc import Sequence
from contextlib import ExitStack

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

from emea.runtime.heartbeat import HEARTBEAT
from emea.runtime.time_left import TRAINING, TimeLeft, in_words

BAR_WIDTH = 14  # so that a line fits into 80 columns


class StepProgress:
    """Shows the stage and its phase, the optimisation steps, and the time left for all phases.

    Without a terminal, the same is logged whenever the log was silent for a minute.

    Args:
        num_steps: Number of steps of the whole run.
        console: The console to show it on; ``None`` means standard error.
        num_stages: Number of remaining stages. The encoders of an ensemble belong to one stage.
        phases: Names of the phases that follow the training of a stage, in order.
    """

    def __init__(
        self,
        num_steps: int,
        console: Console | None = None,
        num_stages: int = 1,
        phases: Sequence[str] = (),
    ) -> None:
        console = console or Console(stderr=True)
        self._num_steps = num_steps
        self._left = TimeLeft(num_steps, num_stages, phases)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(BAR_WIDTH),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _LeftColumn(self._left),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(TRAINING, total=num_steps)
        self._stage = ""
        self._shown = ExitStack()

    def __enter__(self) -> "StepProgress":
        self._progress.start()
        self._shown.enter_context(HEARTBEAT.describing(self.described))
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()
        self._progress.stop()

    def say(self, stage: str) -> None:
        """Start a training and show its name."""
        self._stage = stage
        self.phase(TRAINING)

    def phase(self, name: str) -> None:
        """Show the name of a phase that starts."""
        self._left.start(name)
        self._progress.update(self._task, description=self._title())

    def skip(self, num_steps: int) -> None:
        """Count steps as done that were skipped because training ended early."""
        self._left.skip(num_steps)
        self._progress.advance(self._task, num_steps)

    def count(self, num_steps: int) -> None:
        """Count steps that were trained."""
        self._left.trained(num_steps)
        self._progress.advance(self._task, num_steps)

    def described(self) -> str:
        """Return stage, phase, steps and the time left, as a line for the log."""
        done = self._num_steps - self._left.steps_left
        parts = [self._title()]
        if self._left.phase == TRAINING:
            parts.append(f"{done:,} of {self._num_steps:,} steps")
        seconds = self._left.seconds()
        if seconds is not None:
            parts.append(f"about {in_words(seconds)} left")
        return ", ".join(parts)

    def _title(self) -> str:
        phase = self._left.phase
        return f"{self._stage}: {phase}" if self._stage else phase


class _LeftColumn(ProgressColumn):
    """Shows the time left, if it is known."""

    def __init__(self, left: TimeLeft) -> None:
        super().__init__()
        self._left = left

    def render(self, task: Task) -> Text:
        """Return the time left in words."""
        seconds = self._left.seconds()
        shown = "" if seconds is None else f"{in_words(seconds)} left"
        return Text(shown, style="progress.remaining")
