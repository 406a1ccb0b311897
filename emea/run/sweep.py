"""Numbers the jobs of a sweep, and writes its plan and the table of its outcomes."""

import csv
import io
import json
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from shlex import quote
from statistics import fmean, stdev
from typing import Any

from hydra.conf import HydraConf
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table

from emea.config.command_line import assignments
from emea.errors import DataError
from emea.record.checked_files import read_checked_json, write_atomic, write_json
from emea.record.description import escape_markup, markdown_table
from emea.record.run_folder import (
    METRICS_FILE,
    answered_entry,
    read_yaml,
)
from emea.record.run_header import Launch, sweep_name
from emea.record.store_uri import without_secret
from emea.runtime.console import duration

logger = logging.getLogger(__name__)

PLAN_FILE = "sweep.json"
"""Settings that a sweep varies and its number of jobs, written before the first job."""

OUTCOME_FILE = "outcome.json"
"""How a job of a sweep ended, if it wrote no metrics."""

TABLE_FILE, JOBS_FILE = "results.md", "results.csv"
"""The closing table of a sweep, and a row for each of its jobs."""

FILE_WIDTH = 1000
"""Characters in a line of the table where it is not printed to a terminal."""

SEEDS = ("seed=", "split_seed=")
TITLE = "Hit@1 and MRR among test targets; validation links among all targets"
COLUMNS = ("initial Hit@1", "final Hit@1", "final MRR", "validation Hit@1")
"""Before EM, after it, and of the validation links after it."""


def launch_of(hydra: HydraConf) -> Launch:
    """Return how Hydra launched a job: its command, its sweep and the swept settings.

    Args:
        hydra: Hydra's part of the config of the job.
    """
    typed = [str(text) for text in hydra.overrides.task]
    command = " ".join(["emea run", *(quote(without_secret(text)) for text in typed)])
    if hydra.mode != RunMode.MULTIRUN:
        return Launch(command)
    folder = Path(hydra.sweep.dir)
    keys = (_read_if_valid(folder / PLAN_FILE) or {}).get("swept", [])
    pairs = (text.lstrip("+").partition("=")[::2] for text in typed)
    values = {key: value.replace("'", "") for key, value in pairs}
    swept = {key: values[key] for key in keys if key in values}
    return Launch(command, sweep_name(folder), swept)


class SweepSummary(Callback):
    """Numbers the jobs of a sweep, and prints and writes a summary of their results.

    Launchers that run jobs in other processes send them a copy of this object.
    """

    def __init__(self) -> None:
        self.before: dict[Path, int] = {}
        self.num_jobs: int | None = None
        self.started = 0.0

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Write the plan of the sweep, and record the folders of an earlier sweep."""
        folder = Path(config.hydra.sweep.dir)
        self.before, self.started = _job_stamps(folder), time.time()
        overrides = _sweep_overrides(config)
        self.num_jobs = _num_jobs(config, overrides)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            plan = {"num_jobs": self.num_jobs, "swept": _swept_keys(overrides)}
            write_json(folder / PLAN_FILE, plan)
        except OSError as error:
            logger.warning("The plan of the sweep was not written to %s: %s", folder, error)

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Log which job of the sweep this is, and how long the sweep will take."""
        if OmegaConf.select(config, "hydra.mode") != RunMode.MULTIRUN:
            return
        done, total, left = config.hydra.job.num, self.num_jobs, ""
        # jobs that were recorded before take no time, so they do not say how long the others take
        if total is not None and done and not config.get("skip_recorded"):
            seconds = (time.time() - self.started) / done * (total - done)
            left = f", about {duration(seconds)} left"
        logger.info("Run %d%s%s", done + 1, "" if total is None else f" of {total}", left)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print and write the summary; if a job failed, exit with a status other than 0."""
        folder = Path(config.hydra.sweep.dir)
        outcomes = read_outcomes(folder, self.before)
        failed = sum(bool(one.failed) for one in outcomes)
        try:
            print_summary(outcomes)
            if outcomes:
                write_summary(folder, outcomes)
                print(f"Results: {folder / TABLE_FILE} and {JOBS_FILE}; run folders in {folder}")
        except OSError as error:
            logger.warning("The table of the sweep was not written to %s: %s", folder, error)
        finally:  # Hydra turns an error in a callback into a warning, so set the status explicitly
            if failed:
                sys.exit(f"error: {failed} of {len(outcomes)} jobs failed")


def _swept_keys(overrides: Sequence[Override]) -> list[str]:
    """Return the keys that have more than one value, in the order of the command line."""
    return [
        str(one.get_key_element()).lstrip("+")
        for one in overrides
        if one.is_sweep_override() and (not one.is_discrete_sweep() or len(assignments(one)) > 1)
    ]


def _num_jobs(config: DictConfig, overrides: Sequence[Override]) -> int | None:
    """Return the number of jobs of a sweep; ``None`` if only the sweeper knows it."""
    trials = OmegaConf.select(config, "hydra.sweeper.n_trials")
    if trials is not None:
        return int(trials)
    try:
        return prod(len(assignments(one)) for one in overrides)
    except HydraException:
        return None


def _sweep_overrides(config: DictConfig) -> list[Override]:
    """Return the overrides of a sweep; the last one of a key counts, as in Hydra's sweeper."""
    sweeper = OmegaConf.select(config, "hydra.sweeper", default={})
    params = [f"{key}={value}" for key, value in (sweeper.get("params") or {}).items()]
    typed = OmegaConf.select(config, "hydra.overrides.task", default=[])
    try:
        parsed = OverridesParser.create().parse_overrides([*params, *typed])
    except HydraException:
        return []
    return list({one.get_key_element(): one for one in parsed}.values())


@dataclass(frozen=True)
class JobOutcome:
    """The outcome of one job of a sweep.

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

    @property
    def protocol(self) -> str:
        """The protocol of the run; empty if it has no metrics."""
        return str((self.metrics or {}).get("protocol", ""))

    @property
    def end(self) -> str:
        """Why the job has no row in the table; empty if it has one."""
        if self.failed:
            return f"failed: {self.folder}: {self.failed}"
        return f"recorded: {self.folder}: {self.recorded}" if self.recorded else ""


def write_outcome(folder: Path, **outcome: str) -> None:
    """Write the outcome, ``recorded`` or ``failed``, of a job without metrics in its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / OUTCOME_FILE).write_text(json.dumps(outcome), encoding="utf-8")


def forget_outcome(folder: Path) -> None:
    """Remove the outcome of an earlier job in the folder of a job that starts."""
    (folder / OUTCOME_FILE).unlink(missing_ok=True)


def read_outcomes(sweep: Path, before: Mapping[Path, int] | None = None) -> list[JobOutcome]:
    """Return every job of a sweep, in the order of their numbers.

    Args:
        sweep: The folder of the sweep.
        before: The folders of an earlier sweep.
    """
    old = before or {}
    found = [folder for folder, stamp in _job_stamps(sweep).items() if old.get(folder) != stamp]
    return [_outcome(folder) for folder in sorted(found, key=_number)]


def _job_stamps(sweep: Path) -> dict[Path, int]:
    """Return the folders that Hydra created for jobs, with the time of the last change."""
    files = sweep.rglob(".hydra/overrides.yaml")
    return {file.parents[1]: file.stat().st_mtime_ns for file in files}


def _number(folder: Path) -> int:
    digits = folder.name.split("-")[0]
    return int(digits) if digits.isdigit() else 0


def _outcome(folder: Path) -> JobOutcome:
    typed = map(str, read_yaml(folder / ".hydra" / "overrides.yaml"))
    # Hydra quotes option names that are numbers
    overrides = tuple(text.replace("'", "") for text in typed)
    noted = _read_if_valid(folder / OUTCOME_FILE) or {}
    if noted.get("failed"):  # the metrics then belong to an earlier run
        return JobOutcome(folder, overrides, None, noted["failed"])
    metrics = _read_if_valid(folder / METRICS_FILE)
    if "recorded" in noted:
        metrics = _read_if_valid(Path(noted["recorded"]) / METRICS_FILE)
        return JobOutcome(folder, overrides, metrics, recorded="" if metrics else noted["recorded"])
    reason = "it wrote neither metrics nor a reason; see the log in its folder"
    return JobOutcome(folder, overrides, metrics, "" if metrics else reason)


def _read_if_valid(path: Path) -> dict[str, Any] | None:
    """Return the content of a JSON file; ``None`` if it is missing or damaged."""
    try:
        return read_checked_json(path)
    except DataError:
        return None


def print_summary(outcomes: Sequence[JobOutcome], console: Console | None = None) -> None:
    """Print the table, and below it the jobs that failed and why."""
    if console is None:
        console = Console(highlight=False, markup=False, soft_wrap=True)
        if not console.is_terminal:  # a file has no width limit, so cells are not wrapped
            console.width = FILE_WIDTH
    titles, rows = _table_cells(outcomes)
    if rows:
        table = Table(title=TITLE, title_justify="left")
        for index, title in enumerate(titles):
            is_number = 2 <= index < len(titles) - 1
            table.add_column(title.replace(" ", "\n"), justify="right" if is_number else "left")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for one in outcomes:
        if one.end:
            console.print(one.end)


def write_summary(folder: Path, outcomes: Sequence[JobOutcome]) -> None:
    """Write the table as Markdown, and a row for each job as CSV, into the sweep's folder."""
    table = markdown_table(*_table_cells(outcomes))
    ends = [f"- {escape_markup(one.end)}" for one in outcomes if one.end]
    write_atomic(folder / TABLE_FILE, "\n".join([f"{TITLE}.\n", table, "", *ends]).rstrip() + "\n")
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["folder", "overrides", "protocol", *COLUMNS, "failed", "recorded"])
    for one in outcomes:
        cells = [one.folder.name, " ".join(one.overrides), one.protocol]
        writer.writerow([*cells, *one.numbers, one.failed, one.recorded])
    write_atomic(folder / JOBS_FILE, buffer.getvalue())


def _table_cells(outcomes: Sequence[JobOutcome]) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows; settings that all jobs share are omitted."""
    by_setting: dict[tuple[str, ...], list[JobOutcome]] = {}
    for one in outcomes:
        if one.metrics is not None:
            by_setting.setdefault(one.setting, []).append(one)
    common = set.intersection(*map(set, by_setting)) if by_setting else set()
    rows = []
    for setting, jobs in by_setting.items():
        own = " ".join(text for text in setting if text not in common) or "all"
        protocols = ", ".join(sorted({one.protocol for one in jobs}))
        columns = zip(*(one.numbers for one in jobs), strict=True)
        folders = "\n".join(one.folder.name for one in jobs)
        rows.append([own, protocols, str(len(jobs)), *map(_spread, columns), folders])
    return ["setting", "protocol", "runs", *COLUMNS, "folder"], rows


def _spread(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "n/a"
    deviation = f" ± {stdev(known):.4f}" if len(known) > 1 else ""
    return f"{fmean(known):.4f}{deviation}"
