"""The interface of a tracker, and the tracker that only writes the run's folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from emea.record.run_record import RunHeader, RunRecord


class Tracker(Protocol):
    """Interface of a tracker, which records one run: start once, log often, finish once."""

    @property
    def ui_hint(self) -> str | None:
        """The command that shows the runs to the user; ``None`` if there is no such command."""

    def recorded(self, fingerprint: str) -> str | None:
        """Return where a finished run with this fingerprint is recorded; ``None`` if nowhere."""

    def start(self, header: RunHeader, folder: Path) -> None:
        """Begin the run whose records go to `folder`."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Record metrics measured together at a step."""

    def finish(self, status: str, reason: str = "") -> None:
        """End the run as FINISHED, FAILED or KILLED; a second call changes nothing."""

    def finish_sweep(self, experiment: str, sweep: str, folder: Path, status: str) -> None:
        """Record the summary of a sweep whose jobs have ended.

        Args:
            experiment: The study of its runs.
            sweep: Its name, which is a tag of its runs.
            folder: The folder with its tables.
            status: FINISHED, or FAILED if a job failed.
        """


class NoTracker:
    """Writes the records to the run's folder only."""

    def __init__(self) -> None:
        self._record: RunRecord | None = None

    @property
    def ui_hint(self) -> str | None:
        """``None``, because there is no UI to open."""
        return None

    def recorded(self, fingerprint: str) -> str | None:
        """Return ``None``, because this tracker does not record runs elsewhere."""
        return None

    def start(self, header: RunHeader, folder: Path) -> None:
        """Write the header into the folder."""
        self._record = RunRecord(folder)
        self._record.start(header)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Append metrics to the folder's series."""
        if self._record is None:
            raise RuntimeError("log() needs a run that was started and not yet finished.")
        self._record.log(metrics, step)

    def finish(self, status: str, reason: str = "") -> None:
        """Write how the run ended."""
        if self._record is not None:
            self._record.close(status, reason)
            self._record = None

    def finish_sweep(self, experiment: str, sweep: str, folder: Path, status: str) -> None:
        """Do nothing, because the folder already contains the summary."""
