"""What a sweep ends with: a row per setting, mean and spread over seeds, and who failed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from omegaconf import OmegaConf
from rich.console import Console
from rich.table import Table

from emea.pipeline.run_files import METRICS_FILE

OUTCOME_FILE = "outcome.json"
"""How a job of a sweep ended, where it left no metrics of its own."""

SEEDS = ("seed=", "split_seed=")
METRICS = {"hit@1": "Hit@1", "mrr": "MRR"}


@dataclass(frozen=True)
class JobOutcome:
    """One job of a sweep.

    Args:
        folder: its folder.
        setting: its overrides, seeds left out.
        metrics: of the final ranking; ``None`` where none are in a folder.
        failed: why it failed; empty where it did not.
        recorded: where its numbers are, if they are in no folder.
    """

    folder: Path
    setting: tuple[str, ...]
    metrics: dict[str, Any] | None
    failed: str = ""
    recorded: str = ""


def write_outcome(folder: Path, **told: str) -> None:
    """Note how a job ended that leaves no metrics in its folder: ``recorded`` or ``failed``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / OUTCOME_FILE).write_text(json.dumps(told), encoding="utf-8")


def forget_outcome(folder: Path) -> None:
    """A job begins: how an earlier one in its folder ended does not count."""
    (folder / OUTCOME_FILE).unlink(missing_ok=True)


def job_stamps(sweep: Path) -> dict[Path, int]:
    """The folders that Hydra made for jobs, and when it last did."""
    files = sweep.rglob(".hydra/overrides.yaml")
    return {file.parents[1]: file.stat().st_mtime_ns for file in files}


def read_outcomes(sweep: Path, before: Mapping[Path, int] | None = None) -> list[JobOutcome]:
    """Every job of a sweep, in the order of their numbers.

    Args:
        sweep: its folder.
        before: what the folder held of an earlier sweep.
    """
    old = before or {}
    found = [folder for folder, stamp in job_stamps(sweep).items() if old.get(folder) != stamp]
    return [_outcome(folder) for folder in sorted(found, key=_number)]


def print_summary(outcomes: Sequence[JobOutcome], console: Console | None = None) -> None:
    """The table, and below it the jobs that failed and why."""
    console = console or Console(highlight=False, markup=False, soft_wrap=True)
    if any(one.metrics for one in outcomes):
        console.print(summary_table(outcomes))
    for one in outcomes:
        if one.failed:
            console.print(f"failed: {one.folder}: {one.failed}")
        elif one.recorded:
            console.print(f"recorded: {one.folder}: {one.recorded}")


def summary_table(outcomes: Sequence[JobOutcome]) -> Table:
    """Settings in the order of their first job; what all have in common is left out."""
    rows: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for one in outcomes:
        if one.metrics is not None:
            rows.setdefault(one.setting, []).append(one.metrics)
    common = set.intersection(*(set(setting) for setting in rows))
    table = Table(title="final ranking among test targets", title_justify="left")
    table.add_column("setting")
    table.add_column("protocol")
    table.add_column("runs", justify="right")
    for title in METRICS.values():
        table.add_column(title, justify="right")
    for setting, metrics in rows.items():
        own = " ".join(text for text in setting if text not in common) or "all"
        protocols = ", ".join(sorted({one["protocol"] for one in metrics}))
        numbers = [_spread([one["final"][key] for one in metrics]) for key in METRICS]
        table.add_row(own, protocols, str(len(metrics)), *numbers)
    return table


def _outcome(folder: Path) -> JobOutcome:
    overrides = map(str, OmegaConf.load(folder / ".hydra" / "overrides.yaml"))
    # quotes are Hydra's: a number as an option's name
    setting = tuple(text.replace("'", "") for text in overrides if not text.startswith(SEEDS))
    told = _read(folder / OUTCOME_FILE) or {}
    if told.get("failed"):  # metrics are then an earlier run's
        return JobOutcome(folder, setting, None, told["failed"])
    metrics = _read(folder / METRICS_FILE)
    if "recorded" in told:
        metrics = _read(Path(told["recorded"]) / METRICS_FILE)
        return JobOutcome(folder, setting, metrics, recorded="" if metrics else told["recorded"])
    reason = "it left neither metrics nor a reason; its log is in its folder"
    return JobOutcome(folder, setting, metrics, "" if metrics else reason)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content


def _number(folder: Path) -> int:
    digits = folder.name.split("-")[0]
    return int(digits) if digits.isdigit() else 0


def _spread(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "n/a"
    deviation = f" ± {stdev(known):.4f}" if len(known) > 1 else ""
    return f"{fmean(known):.4f}{deviation}"
