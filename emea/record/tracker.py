"""Records one run in its folder: start once, log often, finish once."""

from collections.abc import Mapping
from pathlib import Path

from emea.record.run_record import (
    MetricPoint,
    RunClosing,
    RunHeader,
    close_record,
    log_point,
    start_record,
)


class Tracker:
    """Writes the records of a run to its folder; a subclass may also send them elsewhere."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    @property
    def ui_hint(self) -> str | None:
        """The command that shows the runs to the user; ``None`` if there is no such command."""
        return None

    def start(self, header: RunHeader, folder: Path) -> None:
        """Write the header into the folder."""
        start_record(folder, header)
        self._folder = folder

    def log(self, metrics: Mapping[str, float], step: int) -> MetricPoint:
        """Append metrics that were measured together at a step to the folder's series."""
        if self._folder is None:
            raise RuntimeError("log() needs a run that was started and not yet finished.")
        return log_point(self._folder, metrics, step)

    def finish(self, status: str, reason: str = "") -> RunClosing | None:
        """End the run as FINISHED, FAILED or KILLED; a second call changes nothing."""
        if self._folder is None:
            return None
        closing, self._folder = close_record(self._folder, status, reason), None
        return closing


class NoTracker(Tracker):
    """Writes the records to the run's folder only."""
