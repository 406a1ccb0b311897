"""Hydra's hooks at the start of a sweep, at the start of each job and at the end."""

import logging
import sys
from math import prod
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from emea.pipeline.experiment import assignments
from emea.pipeline.sweep_summary import job_stamps, print_summary, read_outcomes, write_summary

logger = logging.getLogger(__name__)


class SweepSummary(Callback):
    """Numbers the jobs of a sweep, and prints and writes a summary of their results.

    Launchers that run jobs in other processes send them a copy of this object.
    """

    def __init__(self) -> None:
        self.before: dict[Path, int] = {}
        self.num_jobs: int | None = None

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Remember what an earlier sweep left in the folder, and count the jobs."""
        self.before = job_stamps(Path(config.hydra.sweep.dir))
        self.num_jobs = num_jobs(config)

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Log which job of the sweep this is."""
        if OmegaConf.select(config, "hydra.mode") == RunMode.MULTIRUN:
            total = "" if self.num_jobs is None else f" of {self.num_jobs}"
            logger.info("Run %d%s", config.hydra.job.num + 1, total)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print and write the summary; if a job failed, exit with a status other than 0."""
        folder = Path(config.hydra.sweep.dir)
        outcomes = read_outcomes(folder, self.before)
        failed = sum(bool(one.failed) for one in outcomes)
        try:
            print_summary(outcomes)
            if outcomes:
                print(f"Results: {write_summary(folder, outcomes)}")
        except OSError as error:
            logger.warning("The table of the sweep cannot be written into %s: %s", folder, error)
        finally:  # Hydra turns an error in a callback into a warning; the status must still be set
            if failed:
                sys.exit(f"error: {failed} of {len(outcomes)} jobs failed")


def num_jobs(config: DictConfig) -> int | None:
    """The number of jobs of a sweep; ``None`` where only the sweeper knows it.

    Args:
        config: of the sweep, with Hydra's own part.
    """
    sweeper = OmegaConf.select(config, "hydra.sweeper", default={})
    if sweeper.get("n_trials") is not None:
        return int(sweeper.n_trials)
    params = [f"{key}={value}" for key, value in (sweeper.get("params") or {}).items()]
    typed = OmegaConf.select(config, "hydra.overrides.task", default=[])
    try:
        overrides = OverridesParser.create().parse_overrides([*params, *typed])
        # as Hydra's sweeper does: a key that is given twice has its last values
        values = {one.get_key_element(): len(assignments(one)) for one in overrides}
    except HydraException:
        return None
    return prod(values.values())
