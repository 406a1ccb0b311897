"""Cells of tables: one metric over the runs of several splits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from emea.reporting.records import RecordedRun

NO_RECORD = "no record"
NOT_APPLICABLE = "n/a"


@dataclass(frozen=True)
class Cell:
    """Mean and spread of one metric over splits; no mean where the method has no such metric."""

    mean: float | None
    spread: float
    num_runs: int


def select(runs: Iterable[RecordedRun], **where: Any) -> list[RecordedRun]:
    """The runs whose metrics say so."""
    return [run for run in runs if all(run.metrics[key] == value for key, value in where.items())]


def over_splits(values: Sequence[float | None]) -> Cell | None:
    """Mean and spread of what the splits gave; ``None`` where there is no run."""
    if not values:
        return None
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return Cell(None, 0.0, len(values))
    return Cell(fmean(numbers), stdev(numbers) if len(numbers) > 1 else 0.0, len(numbers))


def cell(runs: Iterable[RecordedRun], metric: str, pool: str = "test", **where: Any) -> Cell | None:
    """A metric of the final ranking over the runs whose metrics say so."""
    return over_splits([run.value(metric, pool) for run in select(runs, **where)])


def num_splits(runs: Iterable[RecordedRun]) -> int:
    """How many splits there are at most in a cell of these runs."""
    return len({run.metrics["split_seed"] for run in runs})


def shown(value: Cell | None, splits: int, form: str = "{:.3f}") -> str:
    """Mean and spread as text; says where it has fewer splits than the others."""
    if value is None:
        return NO_RECORD
    if value.mean is None:
        return NOT_APPLICABLE
    spread = f" ± {form.format(value.spread)}" if value.num_runs > 1 else ""
    return f"{form.format(value.mean)}{spread}{splits_told(value, splits)}"


def splits_told(value: Cell, splits: int) -> str:
    """How many splits it has, where these are fewer than elsewhere, or one."""
    if value.num_runs == 1:
        return " (1 split)"
    return f" ({value.num_runs} splits)" if value.num_runs < splits else ""


def signed(value: float | None, reference: float | None, form: str = "{:.3f}") -> str:
    """How far a value lies above a reference; empty where one of them is missing."""
    if value is None or reference is None:
        return ""
    return form.replace(":", ":+").format(value - reference)
