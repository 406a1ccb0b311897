"""Estimates of the time left, from what was measured so far."""

import time
from collections.abc import Callable, Sequence

MINUTE = 60
HOUR = 60 * MINUTE

TRAINING = "training"


def in_words(seconds: float) -> str:
    """Return a duration as ``40 s``, ``3 min`` or ``2 h 5 min``."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    minutes = round(seconds / MINUTE)
    if minutes < 2 * HOUR // MINUTE:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


class TimeLeft:
    """Estimates the time left of a run of several stages, each a training and further phases.

    The training takes as long as its steps so far, and each other phase as long as the last time.
    If a phase was never measured, the time left is unknown.

    Args:
        num_steps: Number of optimisation steps of the whole run.
        num_stages: Number of stages.
        phases: Names of the phases that follow the training of each stage.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        num_steps: int,
        num_stages: int = 1,
        phases: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.steps_left = num_steps
        self.phases = (TRAINING, *phases)
        self.phase = TRAINING
        self._stages_left = num_stages
        self._clock = clock
        self._since = clock()
        self._measured: dict[str, float] = {}
        self._trained_steps = 0
        self._trained_seconds = 0.0

    def start(self, phase: str) -> None:
        """Note that a phase starts; a training that follows other phases starts a new stage."""
        now = self._clock()
        if self.phase != TRAINING:
            self._measured[self.phase] = now - self._since
            if phase == TRAINING:
                self._stages_left -= 1
        self.phase = phase
        self._since = now

    def trained(self, num_steps: int) -> None:
        """Note that steps were trained since the last call, or since the start of the training."""
        now = self._clock()
        self._trained_seconds += now - self._since
        self._trained_steps += num_steps
        self._since = now
        self.skip(num_steps)

    def skip(self, num_steps: int) -> None:
        """Note that steps will not be trained, because the training ended early."""
        self.steps_left -= num_steps

    def seconds(self) -> float | None:
        """Return the time left; ``None`` if a phase that is still to come was never measured."""
        total = 0.0
        steps = max(0, self.steps_left)
        if steps:
            if not self._trained_steps:
                return None
            total += steps * self._trained_seconds / self._trained_steps
        current = self.phases.index(self.phase) if self.phase in self.phases else 0
        for place, name in enumerate(self.phases[1:], start=1):
            # phases before the current one are over in this stage
            times = self._stages_left - (place < current)
            if times and name not in self._measured:
                return None
            total += times * self._measured.get(name, 0.0)
        usual = self._measured.get(self.phase, 0.0)
        in_phase = min(self._clock() - self._since, usual)
        return max(0.0, total - in_phase)
