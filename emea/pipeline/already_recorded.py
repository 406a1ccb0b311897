"""Passing over runs that are recorded: same settings, data and code."""

import json
import math
from pathlib import Path

from emea.pipeline.run_files import METRICS_FILE
from emea.tracking.recorded import recorded_folder
from emea.tracking.run_record import FINGERPRINT_TAG, RunHeader
from emea.tracking.tracker import Tracker

RECORDS = Path(__file__).resolve().parents[2] / "experiments"
RUNS = ("multirun", "outputs")
"""Where runs leave their folders, from where the command was given."""


class AlreadyRecordedError(Exception):
    """The run is recorded.

    Args:
        place: where to find it.
        hit: its final Hit@1; NaN where only the place is known.
    """

    def __init__(self, place: str, hit: float = math.nan) -> None:
        super().__init__(f"recorded already as {place}: passed over (skip_recorded=false: again)")
        self.hit = hit


def refuse_recorded(header: RunHeader, tracker: Tracker) -> None:
    """Look for a finished run that is the same.

    Raises:
        AlreadyRecordedError: there is one.
    """
    fingerprint = header.tags[FINGERPRINT_TAG]
    folder = recorded_folder(fingerprint, [*map(Path, RUNS), RECORDS])
    if folder is not None:
        raise AlreadyRecordedError(str(folder), _hit(folder))
    found = tracker.recorded(fingerprint)
    if found is not None:
        raise AlreadyRecordedError(f"MLflow run {found}")


def _hit(folder: Path) -> float:
    metrics = json.loads((folder / METRICS_FILE).read_text(encoding="utf-8"))
    hit = metrics["final"]["hit@1"]
    return math.nan if hit is None else float(hit)  # a run without test links has none
