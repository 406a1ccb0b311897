"""Hydra's hook at the end of a sweep."""

import sys
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from emea.pipeline.sweep_summary import job_stamps, print_summary, read_outcomes


class SweepSummary(Callback):
    """Prints what the sweep's jobs left in their folders, whichever process ran them."""

    def __init__(self) -> None:
        self.before: dict[Path, int] = {}

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Remember what an earlier sweep left in the folder."""
        self.before = job_stamps(Path(config.hydra.sweep.dir))

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print the summary; a sweep with a failed job ends with a status that says so."""
        outcomes = read_outcomes(Path(config.hydra.sweep.dir), self.before)
        failed = sum(bool(one.failed) for one in outcomes)
        try:
            print_summary(outcomes)
        finally:  # Hydra takes an error here for a warning, and the status must tell all the same
            if failed:
                sys.exit(f"error: {failed} of {len(outcomes)} jobs failed")
