"""Recorded runs: what was measured, by which code, on which machine."""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from emea.errors import DataError


@dataclass(frozen=True)
class RecordedRun:
    """One run's metrics and header, as its folder holds them."""

    folder: Path
    metrics: dict[str, Any]
    header: dict[str, Any]

    def value(self, metric: str, pool: str = "test") -> float:
        """A metric of the final ranking, among test targets or all targets."""
        final = self.metrics["final"]
        number: float = (final if pool == "test" else final["all_targets"])[metric]
        return number


@dataclass(frozen=True)
class Cell:
    """Mean and spread of one metric over splits."""

    mean: float
    spread: float
    num_runs: int


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


def cell(runs: list[RecordedRun], metric: str, pool: str = "test", **where: Any) -> Cell | None:
    """A metric over the runs whose metrics say so; ``None`` where there is none."""
    chosen = [run for run in runs if all(run.metrics[key] == value for key, value in where.items())]
    values = [run.value(metric, pool) for run in chosen]
    if not values:
        return None
    return Cell(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))


def provenance_line(runs: list[RecordedRun]) -> str:
    """By which code and on which machine the runs were made, in one sentence."""
    tags = [run.header["tags"] for run in runs]

    def all_of(key: str) -> str:
        return ", ".join(sorted({tag.get(key, "unknown") for tag in tags}))

    commits = ", ".join(sorted({tag["commit"][:10] for tag in tags}))
    splits = ", ".join(sorted({str(run.metrics["split_seed"]) for run in runs}))
    return (
        f"{len(runs)} recorded runs; commit {commits} (dirty: {all_of('dirty')}), "
        f"{all_of('gpu')}, torch {all_of('torch')}; mean ± standard deviation over split seeds "
        f"{splits} unless a cell says otherwise, seed 0; 100 validation links beside the ratio."
    )
