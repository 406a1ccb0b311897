"""Records one run in its folder: start once, log often, finish once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emea.record.run_record import (
    MetricPoint,
    RunClosing,
    RunHeader,
    close_record,
    log_point,
    start_record,
)


@dataclass(frozen=True)
class StoredRun:
    """A finished run in a tracking store.

    Args:
        place: Its name and id, for people.
        metrics: The content of its ``metrics.json``; empty if the store does not have the file.
    """

    place: str
    metrics: dict[str, Any] = field(default_factory=dict)


class Tracker:
    """Writes the records of a run to its folder; a subclass may also send them elsewhere."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    @property
    def ui_hint(self) -> str | None:
        """The command that shows the runs to the user; ``None`` if there is no such command."""
        return None

    def recorded(self, fingerprint: str, folder: Path) -> StoredRun | None:
        """Return a finished run of the store with this fingerprint.

        Args:
            fingerprint: The fingerprint of the run that is about to start.
            folder: The folder of that run.
        """
        return None

    def start(self, header: RunHeader, folder: Path) -> None:
        """Write the header into the folder."""
        start_record(folder, header)
        self._folder = folder

    def log(self, metrics: Mapping[str, float], step: int) -> MetricPoint:
        """Append metrics that were measured together at a step to the folder's series."""
        if self._folder is None:
            raise RuntimeError(
                "log() needs a run that was started and not yet finished."
            )
        return log_point(self._folder, metrics, step)

    def finish(self, status: str, reason: str = "") -> RunClosing | None:
        """End the run as FINISHED, FAILED or KILLED; a second call changes nothing."""
        if self._folder is None:
            return None
        closing = close_record(self._folder, status, reason)
        self._folder = None
        return closing

    def finish_sweep(self, study: str, sweep: str, folder: Path, status: str) -> None:
        """Add the summary in the folder of a sweep to the record of the sweep."""


class NoTracker(Tracker):
    """Writes the records to the run's folder only."""
