"""Recorded runs: what was measured, by which code, on which machine."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emea.errors import DataError
from emea.reporting.origin import machine_of, short_commit


@dataclass(frozen=True)
class RecordedRun:
    """One run's metrics and header, as its folder holds them."""

    folder: Path
    metrics: dict[str, Any]
    header: dict[str, Any]

    def value(self, metric: str, pool: str = "test") -> float | None:
        """A metric of the final ranking, among test targets or all targets.

        ``None`` where the method has none: reasoning names one counterpart and ranks no others.
        """
        final = self.metrics["final"]
        number: float | None = (final if pool == "test" else final["all_targets"])[metric]
        return number


def load_records(folder: Path) -> list[RecordedRun]:
    """Every finished run under a folder, by name."""
    files = sorted(folder.glob("*/metrics.json"))
    if not files:
        raise DataError(f"{folder} holds no recorded runs (folders with a metrics.json)")
    return [
        RecordedRun(
            file.parent,
            json.loads(file.read_text(encoding="utf-8")),
            json.loads((file.parent / "run.json").read_text(encoding="utf-8")),
        )
        for file in files
    ]


def load_committed(folder: Path) -> list[RecordedRun]:
    """The runs that count: those of code that lies in the history as it was run."""
    runs = [run for run in load_records(folder) if run.header["tags"]["dirty"] == "false"]
    if not runs:
        raise DataError(f"{folder} holds no recorded runs of committed code")
    return runs


def provenance_line(runs: list[RecordedRun]) -> str:
    """By which code and on which machine the runs were made, in one sentence."""
    tags = [run.header["tags"] for run in runs]

    def all_of(key: str) -> str:
        return ", ".join(sorted({tag.get(key, "unknown") for tag in tags}))

    commits = ", ".join(sorted({short_commit(tag) for tag in tags}))
    machines = ", ".join(sorted({machine_of(tag) for tag in tags}))
    splits = ", ".join(sorted({str(run.metrics["split_seed"]) for run in runs}))
    return (
        f"{len(runs)} recorded runs; commit {commits} (dirty: {all_of('dirty')}), "
        f"{machines}, torch {all_of('torch')}; mean ± standard deviation over split seeds "
        f"{splits} unless a cell says otherwise, seed 0; 100 validation links beside the ratio."
    )
