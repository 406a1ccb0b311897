"""Numbers the jobs of a sweep, and writes its plan and the table of its outcomes."""

import csv
import io
import logging
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from shlex import quote
from statistics import fmean, stdev
from typing import Any

from filelock import FileLock, Timeout
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
from emea.config.instantiate import factory
from emea.errors import DataError, UserError
from emea.evaluation.metric_table import SWEPT, listed_titles
from emea.record.checked_files import read_checked_json, write_atomic, write_json
from emea.record.markdown import escape_markup, markdown_table
from emea.record.mlflow_sweep import JOBS_FILE, TABLE_FILE
from emea.record.run_folder import METRICS_FILE, answered_entry, read_yaml
from emea.record.run_header import Launch, sweep_name
from emea.record.run_record import LOCK_FILE, is_run_folder, read_header
from emea.record.tracker import Tracker
from emea.runtime.console import say, terminal
from emea.runtime.time_left import in_words

logger = logging.getLogger(__name__)

PLAN_FILE = "sweep.json"
"""Settings that a sweep varies and its number of jobs, written before the first job."""

OUTCOME_FILE = "outcome.json"
"""How a job of a sweep ended, if it wrote no metrics."""

MOST_CHARACTERS, UNUSUAL = 120, re.compile(r"[^\w.+-]+")
"""Limits of the name of a job's folder: its length, and characters that it may not have."""

FILE_WIDTH = 1000
"""Characters in a line of the table where it is not printed to a terminal."""

SEEDS = ("seed=", "split_seed=")
TITLE = f"{listed_titles(SWEPT)} among test targets; validation links among all targets"
COLUMNS = tuple(column.title for column in SWEPT)
NAMES = tuple(column.attribute for column in SWEPT)
"""The columns of the CSV file, which are attributes of a pandas data frame."""

USUAL_SETTINGS = ("data", "ratio", "split_seed", "seed")
"""Settings with a column in the CSV file, swept or not."""


def launch_of(hydra: HydraConf) -> Launch:
    """Return how Hydra launched a job: its command, its sweep and the swept settings.

    Args:
        hydra: Hydra's part of the config of the job.
    """
    typed = [str(text) for text in hydra.overrides.task]
    command = " ".join(["emea run", *map(quote, typed)])
    if hydra.mode != RunMode.MULTIRUN:
        return Launch(command)
    folder = Path(hydra.sweep.dir)
    return Launch(command, sweep_name(folder), _swept_values(folder, typed))


def _swept_values(sweep: Path, typed: Sequence[str]) -> dict[str, str]:
    """Return the values of one job for the settings that its sweep varies."""
    keys = (_read_if_valid(sweep / PLAN_FILE) or {}).get("swept", [])
    values = _values(typed)
    return {key: values[key] for key in keys if key in values}


def _values(overrides: Sequence[str]) -> dict[str, str]:
    """Return the values of single overrides by key; Hydra quotes option names that are numbers."""
    pairs = (text.lstrip("+").partition("=")[::2] for text in overrides)
    return {key: value.replace("'", "") for key, value in pairs}


def _job_name(usual: str, *, _root_: DictConfig) -> str:
    """Return the name of a job's folder: what its sweep varies, such as ``em_dual-seed_1``."""
    hydra = _root_.hydra
    values = _swept_values(
        Path(hydra.sweep.dir), [str(text) for text in hydra.overrides.task]
    )
    swept = "-".join(f"{key}_{value}" for key, value in values.items())
    return UNUSUAL.sub("_", swept)[:MOST_CHARACTERS] or usual


OmegaConf.register_new_resolver("job_name", _job_name, replace=True)


_held: list[FileLock] = []
"""The lock of the sweep that this process runs. It shows that the sweep is alive. It is not an
attribute of the callback, because launchers send a copy of that to other processes."""


class SweepSummary(Callback):
    """Numbers the jobs of a sweep, and prints and writes a summary of their results.

    Launchers that run jobs in other processes send them a copy of this object.
    """

    def __init__(self) -> None:
        self.num_jobs: int | None = None
        self.started = 0.0

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Write the plan of the sweep."""
        folder = Path(config.hydra.sweep.dir)
        overrides = _sweep_overrides(config)
        self.num_jobs = _num_jobs(config, overrides)
        self.started = time.time()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # in the order of the command line
            varied = [one for one in overrides if len(assignments(one)) > 1]
            swept = [str(one.get_key_element()).lstrip("+") for one in varied]
            write_json(folder / PLAN_FILE, {"num_jobs": self.num_jobs, "swept": swept})
            _hold_lock(folder)
            runs = "1 run" if self.num_jobs == 1 else f"{self.num_jobs or 'all'} runs"
            logger.info("Checking the settings of %s", runs)
        except OSError as error:
            logger.warning(
                "The plan of the sweep was not written to %s: %s", folder, error
            )

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Log which job of the sweep this is, and how long the other jobs will take."""
        if OmegaConf.select(config, "hydra.mode") != RunMode.MULTIRUN:
            return
        number = config.hydra.job.num + 1
        if self.num_jobs is None:
            logger.info("Run %d", number)
            return
        seconds = time_left(Path(config.hydra.sweep.dir), self.started, self.num_jobs)
        # a job that is recorded already takes no time
        about = "at most about" if config.get("skip_recorded") else "about"
        left = "" if seconds is None else f", {about} {in_words(seconds)} left"
        logger.info("Run %d of %d%s", number, self.num_jobs, left)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print and write the summary; if a job failed, exit with a status other than 0."""
        folder = Path(config.hydra.sweep.dir)
        outcomes = read_outcomes(folder)
        failed = sum(bool(one.failed) for one in outcomes)
        try:
            print_summary(outcomes)
            if outcomes:
                write_summary(folder, outcomes)
                say(
                    f"Results: {folder / TABLE_FILE} and {JOBS_FILE}; run folders in {folder}"
                )
                track_summary(config, folder, outcomes)
        except (OSError, UserError) as error:
            logger.warning(
                "The table of the sweep was not written to %s: %s", folder, error
            )
        finally:
            _release_lock()
            # Hydra turns an error in a callback into a warning, so set the status explicitly
            if failed:
                jobs = (
                    f"{failed} of {len(outcomes)} jobs"
                    if len(outcomes) > 1
                    else "the job"
                )
                sys.exit(f"error: {jobs} failed")


def _hold_lock(folder: Path) -> None:
    """Lock the folder of a sweep while this process runs it."""
    lock = FileLock(folder / LOCK_FILE, timeout=0)
    with suppress(Timeout):  # another sweep runs in the same folder
        lock.acquire()
        _held.append(lock)


def _release_lock() -> None:
    while _held:
        _held.pop().release()


def time_left(sweep: Path, started: float, num_jobs: int) -> float | None:
    """Return the time until all jobs of a sweep are done; ``None`` before the first one is.

    Jobs are counted by the files that they leave in the sweep's folder. So the estimate is also
    right for launchers that run several jobs at a time, on all machines that share the folder.

    Args:
        sweep: The folder of the sweep.
        started: When the sweep started, in seconds since the epoch.
        num_jobs: Number of all jobs.
    """
    ends = [*sweep.rglob(METRICS_FILE), *sweep.rglob(OUTCOME_FILE)]
    # the folder may also contain the jobs of an earlier sweep
    done = {path.parent: path for path in ends if path.stat().st_mtime >= started}
    num_trained = sum(path.name == METRICS_FILE for path in done.values())
    if not num_trained:
        return None
    seconds = (time.time() - started) / num_trained
    return seconds * max(0, num_jobs - len(done))


def _num_jobs(config: DictConfig, overrides: Sequence[Override]) -> int | None:
    """Return the number of jobs of a sweep; ``None`` if only the sweeper knows it."""
    trials = OmegaConf.select(config, "hydra.sweeper.n_trials")
    if trials is not None:
        return int(trials)
    is_search = any(one.is_interval_sweep() for one in overrides)
    return None if is_search else prod(len(assignments(one)) for one in overrides)


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
    """

    folder: Path
    overrides: tuple[str, ...]
    metrics: dict[str, Any] | None
    failed: str = ""

    @property
    def setting(self) -> tuple[str, ...]:
        """The overrides of the job without seeds."""
        return tuple(text for text in self.overrides if not text.startswith(SEEDS))

    @property
    def numbers(self) -> tuple[float | None, ...]:
        """The values of the columns; ``None`` for those that the run does not have."""
        metrics = self.metrics or {}
        entry = answered_entry(metrics)
        validation = entry.get("validation_answer") or entry.get("validation")
        sections = {**metrics, "validation": validation}
        return tuple(
            (sections.get(column.stage) or {}).get(column.metric.name)
            for column in SWEPT
        )


def write_outcome(folder: Path, **outcome: object) -> None:
    """Write the outcome of a job without metrics in its folder.

    Args:
        folder: The folder of the job.
        outcome: Either ``failed``, the reason, or ``recorded``, the place of the run that was
            recorded before, with its ``metrics``.
    """
    write_json(folder / OUTCOME_FILE, outcome)


def forget_outcome(folder: Path) -> None:
    """Remove the outcome of an earlier job in the folder of a job that starts."""
    (folder / OUTCOME_FILE).unlink(missing_ok=True)


def read_outcomes(sweep: Path) -> list[JobOutcome]:
    """Return every job in the folder of a sweep, in the order of their numbers."""
    found = {}
    for file in sweep.rglob(".hydra/overrides.yaml"):
        folder = file.parents[1]
        typed = map(str, read_yaml(file))
        # Hydra quotes option names that are numbers
        overrides = tuple(text.replace("'", "") for text in typed)
        noted = _read_if_valid(folder / OUTCOME_FILE) or {}
        # a run that was recorded before has its metrics in another folder or in a store
        metrics = noted.get("metrics") or None
        if metrics is None:
            metrics = _read_if_valid(Path(noted.get("recorded", folder)) / METRICS_FILE)
        failed = noted.get("failed", "")
        if failed:  # the metrics belong to an earlier run
            metrics = None
        elif metrics is None and "recorded" not in noted:
            failed = "it wrote neither metrics nor a reason; see the log in its folder"
        digits = folder.name.split("-")[0]
        place = int(digits) if digits.isdigit() else 0
        found[place, folder] = JobOutcome(folder, overrides, metrics, failed)
    return [found[key] for key in sorted(found)]


def _read_if_valid(path: Path) -> dict[str, Any] | None:
    """Return the content of a JSON file; ``None`` if it is missing or damaged."""
    try:
        return read_checked_json(path)
    except DataError:
        return None


def print_summary(
    outcomes: Sequence[JobOutcome], console: Console | None = None
) -> None:
    """Print the table, and below it the jobs that failed and why."""
    if console is None:
        console = terminal(highlight=False, markup=False, soft_wrap=True)
        if (
            not console.is_terminal
        ):  # a file has no width limit, so cells are not wrapped
            console.width = FILE_WIDTH
    titles, rows = _table_cells(outcomes)
    if rows:
        table = Table(title=TITLE, title_justify="left")
        for index, title in enumerate(titles):
            is_number = 2 <= index < len(titles) - 1
            table.add_column(
                title.replace(" ", "\n"), justify="right" if is_number else "left"
            )
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for line in _failures(outcomes):
        console.print(line)


def _failures(outcomes: Sequence[JobOutcome]) -> list[str]:
    return [f"failed: {one.folder}: {one.failed}" for one in outcomes if one.failed]


def write_summary(folder: Path, outcomes: Sequence[JobOutcome]) -> None:
    """Write the table as Markdown, and a row for each job as CSV, into the sweep's folder."""
    table = markdown_table(*_table_cells(outcomes))
    ends = [f"- {escape_markup(line)}" for line in _failures(outcomes)]
    write_atomic(
        folder / TABLE_FILE,
        "\n".join([f"{TITLE}.\n", table, "", *ends]).rstrip() + "\n",
    )
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    keys = (_read_if_valid(folder / PLAN_FILE) or {}).get("swept", [])
    keys = list(dict.fromkeys((*USUAL_SETTINGS, *map(str, keys))))
    names = [re.sub(r"\W", "_", key) for key in keys]
    writer.writerow(["folder", *names, "protocol", *NAMES, "failed", "overrides"])
    for one in outcomes:
        known = (one.metrics or {}) | _values(one.overrides)
        cells = [one.folder.name, *(known.get(key, "") for key in (*keys, "protocol"))]
        writer.writerow([*cells, *one.numbers, one.failed, " ".join(one.overrides)])
    write_atomic(folder / JOBS_FILE, buffer.getvalue())


def track_summary(
    config: DictConfig, folder: Path, outcomes: Sequence[JobOutcome]
) -> None:
    """Add the summary of a sweep to the records of its studies in the tracking store.

    Args:
        config: The settings that all jobs share.
        folder: The folder of the sweep.
        outcomes: The outcomes of its jobs.
    """
    status = "FAILED" if any(one.failed for one in outcomes) else "FINISHED"
    studies = {str(config.study)}
    studies |= {
        read_header(one.folder).experiment
        for one in outcomes
        if is_run_folder(one.folder)
    }
    for study in sorted(studies):
        tracker: Tracker = factory(config.tracking)()
        tracker.finish_sweep(study, sweep_name(folder), folder, status)


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
        protocols = ", ".join(
            sorted({(one.metrics or {}).get("protocol", "") for one in jobs})
        )
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
