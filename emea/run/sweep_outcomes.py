"""The outcomes of the jobs of a sweep, and their table."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rich.console import Console
from rich.table import Table

from emea.errors import DataError
from emea.record.atomic import write_atomic
from emea.record.checksums import read_checked_json
from emea.record.description import escape_markup, markdown_table
from emea.record.mlflow_store import JOBS_FILE, TABLE_FILE
from emea.record.run_folder import METRICS_FILE, answered_entry, read_yaml

OUTCOME_FILE = "outcome.json"
"""How a job of a sweep ended, if it wrote no metrics."""

FILE_WIDTH = 1000
"""Characters in a line of the table where it is not printed to a terminal."""

SEEDS = ("seed=", "split_seed=")
TITLE = "Hit@1 and MRR among test targets; validation links among all targets"
COLUMNS = ("initial Hit@1", "final Hit@1", "final MRR", "validation Hit@1")
"""Before EM, after it, and of the validation links after it."""


@dataclass(frozen=True)
class JobOutcome:
    """Holds the outcome of one job of a sweep.

    Args:
        folder: The folder of the job.
        overrides: The overrides of the job.
        metrics: The content of its ``metrics.json``; ``None`` if there is no such file.
        failed: The reason why it failed; empty if it did not fail.
        recorded: The place of its record, if the numbers are not in a folder.
    """

    folder: Path
    overrides: tuple[str, ...]
    metrics: dict[str, Any] | None
    failed: str = ""
    recorded: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended: it has metrics, failed, or was recorded before."""
        return bool(self.metrics or self.recorded or (self.folder / OUTCOME_FILE).exists())

    @property
    def was_recorded(self) -> bool:
        """Whether the job was skipped because an earlier run had the same settings."""
        return "recorded" in (read_if_valid(self.folder / OUTCOME_FILE) or {})

    @property
    def setting(self) -> tuple[str, ...]:
        """The overrides of the job without seeds."""
        return tuple(text for text in self.overrides if not text.startswith(SEEDS))

    @property
    def numbers(self) -> tuple[float | None, ...]:
        """The values of the columns; ``None`` for those that the run does not have."""
        metrics = self.metrics or {}
        entry = answered_entry(metrics)
        validation = entry.get("validation_answer") or entry.get("validation") or {}
        initial, final = metrics.get("initial") or {}, metrics.get("final") or {}
        return (
            initial.get("hit@1"),
            final.get("hit@1"),
            final.get("mrr"),
            validation.get("hit@1"),
        )


def write_outcome(folder: Path, **outcome: str) -> None:
    """Write the outcome, ``recorded`` or ``failed``, of a job without metrics in its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / OUTCOME_FILE).write_text(json.dumps(outcome), encoding="utf-8")


def forget_outcome(folder: Path) -> None:
    """Remove the outcome of an earlier job in the folder of a job that starts."""
    (folder / OUTCOME_FILE).unlink(missing_ok=True)


def job_stamps(sweep: Path) -> dict[Path, int]:
    """Return the folders that Hydra created for jobs, with the time of the last change."""
    files = sweep.rglob(".hydra/overrides.yaml")
    return {file.parents[1]: file.stat().st_mtime_ns for file in files}


def read_outcomes(sweep: Path, before: Mapping[Path, int] | None = None) -> list[JobOutcome]:
    """Return every job of a sweep, in the order of their numbers.

    Args:
        sweep: The folder of the sweep.
        before: The folders of an earlier sweep.
    """
    old = before or {}
    found = [folder for folder, stamp in job_stamps(sweep).items() if old.get(folder) != stamp]
    return [_outcome(folder) for folder in sorted(found, key=_number)]


def print_summary(outcomes: Sequence[JobOutcome], console: Console | None = None) -> None:
    """Print the table, and below it the jobs that failed and why."""
    if console is None:
        console = Console(highlight=False, markup=False, soft_wrap=True)
        if not console.is_terminal:  # a file has no width limit, so cells are not wrapped
            console.width = FILE_WIDTH
    if any(one.metrics for one in outcomes):
        console.print(summary_table(outcomes))
    for line in filter(None, map(_end, outcomes)):
        console.print(line)


def write_summary(folder: Path, outcomes: Sequence[JobOutcome]) -> Path:
    """Write the table as Markdown, and a row for each job as CSV, into the sweep's folder.

    Returns:
        The file with the table.
    """
    titles, rows = table_cells(outcomes)
    table = markdown_table(titles, rows)
    ends = [f"- {escape_markup(line)}" for line in map(_end, outcomes) if line]
    write_atomic(folder / TABLE_FILE, "\n".join([f"{TITLE}.\n", table, "", *ends]).rstrip() + "\n")
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["folder", "overrides", "protocol", *COLUMNS, "failed", "recorded"])
    for one in outcomes:
        protocol = (one.metrics or {}).get("protocol", "")
        overrides = " ".join(one.overrides)
        values = ["" if value is None else value for value in one.numbers]
        writer.writerow([one.folder.name, overrides, protocol, *values, one.failed, one.recorded])
    write_atomic(folder / JOBS_FILE, buffer.getvalue())
    return folder / TABLE_FILE


def summary_table(outcomes: Sequence[JobOutcome]) -> Table:
    """Return the closing table, for a terminal."""
    titles, rows = table_cells(outcomes)
    table = Table(title=TITLE, title_justify="left")
    for index, title in enumerate(titles):
        is_number = 2 <= index < len(titles) - 1
        table.add_column(title.replace(" ", "\n"), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*row)
    return table


def table_cells(outcomes: Sequence[JobOutcome]) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows; settings that all jobs share are omitted."""
    by_setting: dict[tuple[str, ...], list[JobOutcome]] = {}
    for one in outcomes:
        if one.metrics is not None:
            by_setting.setdefault(one.setting, []).append(one)
    common = set.intersection(*map(set, by_setting)) if by_setting else set()
    rows = []
    for setting, jobs in by_setting.items():
        own = " ".join(text for text in setting if text not in common) or "all"
        protocols = ", ".join(sorted({str((one.metrics or {})["protocol"]) for one in jobs}))
        columns = zip(*(one.numbers for one in jobs), strict=True)
        folders = "\n".join(one.folder.name for one in jobs)
        rows.append([own, protocols, str(len(jobs)), *map(_spread, columns), folders])
    return ["setting", "protocol", "runs", *COLUMNS, "folder"], rows


def _end(one: JobOutcome) -> str:
    """Return why a job has no row in the table; empty if it has one."""
    if one.failed:
        return f"failed: {one.folder}: {one.failed}"
    return f"recorded: {one.folder}: {one.recorded}" if one.recorded else ""


def _outcome(folder: Path) -> JobOutcome:
    typed = map(str, read_yaml(folder / ".hydra" / "overrides.yaml"))
    # Hydra quotes option names that are numbers
    overrides = tuple(text.replace("'", "") for text in typed)
    noted = read_if_valid(folder / OUTCOME_FILE) or {}
    if noted.get("failed"):  # the metrics then belong to an earlier run
        return JobOutcome(folder, overrides, None, noted["failed"])
    metrics = read_if_valid(folder / METRICS_FILE)
    if "recorded" in noted:
        metrics = read_if_valid(Path(noted["recorded"]) / METRICS_FILE)
        return JobOutcome(folder, overrides, metrics, recorded="" if metrics else noted["recorded"])
    reason = "it wrote neither metrics nor a reason; see the log in its folder"
    return JobOutcome(folder, overrides, metrics, "" if metrics else reason)


def read_if_valid(path: Path) -> dict[str, Any] | None:
    """Return the content of a JSON file; ``None`` if it is missing or damaged."""
    try:
        return read_checked_json(path)
    except (OSError, DataError):
        return None


def _number(folder: Path) -> int:
    digits = folder.name.split("-")[0]
    return int(digits) if digits.isdigit() else 0


def _spread(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "n/a"
    deviation = f" ± {stdev(known):.4f}" if len(known) > 1 else ""
    return f"{fmean(known):.4f}{deviation}"
