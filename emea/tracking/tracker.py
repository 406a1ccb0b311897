"""What the pipeline asks of whoever records a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from emea.tracking.run_record import RunHeader


class Tracker(Protocol):
    """Records one run: start, log as often as wanted, finish once."""

    @property
    def ui_hint(self) -> str | None:
        """The command that opens the runs for a person; None where there is nothing to open."""

    def recorded(self, fingerprint: str) -> str | None:
        """Where a finished run with this fingerprint is to be found; None: there is none."""

    def start(self, header: RunHeader, folder: Path) -> None:
        """Begin the run whose records go to `folder`."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Record metrics measured together at a step."""

    def finish(self, status: str, reason: str = "") -> None:
        """End the run as FINISHED, FAILED or KILLED; a second call changes nothing."""
