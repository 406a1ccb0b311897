"""Tracking without a tracking store."""

from collections.abc import Mapping
from pathlib import Path

from emea.tracking.run_record import RunHeader, RunRecord


class NoTracker:
    """Keeps the records in the run's folder and nothing else."""

    def __init__(self) -> None:
        self._record: RunRecord | None = None

    @property
    def ui_hint(self) -> str | None:
        """There is no UI to open."""
        return None

    def recorded(self, fingerprint: str) -> str | None:
        """Nobody remembers earlier runs."""
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
