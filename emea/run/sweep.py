"""Numbers the jobs of a sweep and writes its plan and its summary."""

import logging
import sys
import time
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from shlex import quote
from typing import Any

from hydra.conf import HydraConf
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from emea.config.command_line import assignments
from emea.config.instantiate import factory
from emea.record.atomic import write_json
from emea.record.mlflow_store import JOBS_FILE
from emea.record.run_folder import CONFIG_FILE, read_config
from emea.record.run_header import Launch, sweep_name, with_secrets
from emea.record.secrets import without_secret
from emea.record.tracker import Tracker
from emea.run.sweep_outcomes import (
    JobOutcome,
    job_stamps,
    print_summary,
    read_if_valid,
    read_outcomes,
    write_summary,
)
from emea.runtime.console import duration

logger = logging.getLogger(__name__)

PLAN_FILE = "sweep.json"
"""Settings that a sweep varies and its number of jobs, written before the first job."""


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
    keys = (read_if_valid(folder / PLAN_FILE) or {}).get("swept", [])
    pairs = (text.lstrip("+").partition("=")[::2] for text in typed)
    values = {key: value.replace("'", "") for key, value in pairs}
    swept = {key: values[key] for key in keys if key in values}
    return Launch(command, sweep_name(folder), swept)


def time_left(sweep: Path, before: Mapping[Path, int], started: float, total: int) -> float | None:
    """Return the seconds until the last job ends; ``None`` before the first one has ended.

    Jobs that were recorded before take no time, so they do not count as a measurement.

    Args:
        sweep: The folder of the sweep.
        before: The folders of an earlier sweep.
        started: The start of the sweep, in seconds since the epoch.
        total: Number of jobs.
    """
    outcomes = [one for one in read_outcomes(sweep, before) if one.has_ended]
    computed = sum(not one.was_recorded for one in outcomes)
    if not computed:
        return None
    return (time.time() - started) / computed * max(0, total - len(outcomes))


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
        self.before, self.started = job_stamps(folder), time.time()
        self.num_jobs = num_jobs(config)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            plan = {"num_jobs": self.num_jobs, "swept": swept_keys(config)}
            write_json(folder / PLAN_FILE, plan)
        except OSError as error:
            logger.warning("The plan of the sweep was not written to %s: %s", folder, error)

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Log which job of the sweep this is, and how long the sweep will take."""
        if OmegaConf.select(config, "hydra.mode") != RunMode.MULTIRUN:
            return
        number, folder = config.hydra.job.num + 1, Path(config.hydra.sweep.dir)
        if self.num_jobs is None:
            logger.info("Run %d", number)
            return
        seconds = time_left(folder, self.before, self.started, self.num_jobs)
        left = "" if seconds is None else f", about {duration(seconds)} left"
        logger.info("Run %d of %d%s", number, self.num_jobs, left)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print and write the summary; if a job failed, exit with a status other than 0."""
        folder = Path(config.hydra.sweep.dir)
        outcomes = read_outcomes(folder, self.before)
        failed = sum(bool(one.failed) for one in outcomes)
        try:
            print_summary(outcomes)
            if outcomes:
                written = write_summary(folder, outcomes)
                print(f"Results: {written} and {JOBS_FILE}; run folders in {folder}")
                track_summary(folder, outcomes)
        except OSError as error:
            logger.warning("The table of the sweep was not written to %s: %s", folder, error)
        finally:  # Hydra turns an error in a callback into a warning, so set the status explicitly
            if failed:
                sys.exit(f"error: {failed} of {len(outcomes)} jobs failed")


def track_summary(folder: Path, outcomes: Sequence[JobOutcome]) -> None:
    """Pass the summary to the tracker of the sweep's runs, once for each study.

    Args:
        folder: The folder of the sweep.
        outcomes: The outcomes of its jobs.
    """
    status = "FAILED" if any(one.failed for one in outcomes) else "FINISHED"
    seen: set[tuple[str, str]] = set()
    for one in outcomes:
        if one.failed or not (one.folder / CONFIG_FILE).is_file():
            continue
        config = with_secrets(read_config(one.folder))
        place = (config.study, str(config.tracking))
        if place in seen:
            continue
        seen.add(place)
        tracker: Tracker = factory(config.tracking)()
        tracker.finish_sweep(config.study, sweep_name(folder), folder, status)


def swept_keys(config: DictConfig) -> list[str]:
    """Return the keys that have more than one value in a sweep, in the order of the command line.

    Args:
        config: The configuration of the sweep, with Hydra's own part.
    """
    overrides = _sweep_overrides(config)
    return [
        str(one.get_key_element()).lstrip("+")
        for one in overrides
        if one.is_sweep_override() and (not one.is_discrete_sweep() or len(assignments(one)) > 1)
    ]


def num_jobs(config: DictConfig) -> int | None:
    """Return the number of jobs of a sweep; ``None`` if only the sweeper knows it.

    Args:
        config: The configuration of the sweep, with Hydra's own part.
    """
    trials = OmegaConf.select(config, "hydra.sweeper.n_trials")
    if trials is not None:
        return int(trials)
    try:
        values = [len(assignments(one)) for one in _sweep_overrides(config)]
    except HydraException:
        return None
    return prod(values)


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
