"""The Lightning Trainer of a fit: its device, and the settings under ``trainer``."""

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning import Trainer
from pytorch_lightning.accelerators import CUDAAccelerator
from pytorch_lightning.loggers import Logger
from pytorch_lightning.strategies import SingleDeviceStrategy
from pytorch_lightning.utilities.exceptions import (  # type: ignore[attr-defined]
    MisconfigurationException,
)

from emea.errors import ConfigError


@dataclass(frozen=True, eq=False)
class LightningSettings:
    """Holds what a config adds to each fit.

    Args:
        callbacks: Callbacks that run after those of the run.
        loggers: Loggers that receive what the module logs.
        options: Additional arguments of ``pl.Trainer``.
    """

    callbacks: Sequence[pl.Callback] = ()
    loggers: Sequence[Logger] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def trainer(self, callbacks: Sequence[pl.Callback], **given: Any) -> pl.Trainer:
        """Return a Lightning Trainer with the run's callbacks and arguments, and these settings.

        Raises:
            ConfigError: If Lightning does not accept a setting.
        """
        # a block is a batch, so Lightning's default of 50 would skip most of a short fit
        options = {"log_every_n_steps": 1, **self.options}
        try:
            return pl.Trainer(
                callbacks=list(callbacks), logger=list(self.loggers) or False, **given, **options
            )
        except (MisconfigurationException, TypeError, ValueError) as error:
            if not self.options:
                raise
            names = ", ".join(f"trainer.{name}" for name in self.options)
            raise ConfigError(f"Lightning does not accept {names}: {error}") from error


class ResidentStrategy(SingleDeviceStrategy):
    """Leaves the module on its device after a fit, because another fit follows.

    Lightning would copy weights, graph structure and optimiser state to the main memory, and the
    next fit would copy them back.
    """

    def teardown(self) -> None:
        """Release the state of the optimiser, which is used in one fit only."""
        for optimizer in self.optimizers:
            optimizer.state.clear()
        self.precision_plugin.teardown()
        assert self.accelerator is not None
        self.accelerator.teardown()
        self.checkpoint_io.teardown()


class ResidentAccelerator(CUDAAccelerator):
    """Keeps the device memory that torch has cached, because the next fit or search uses it.

    Lightning would return it to the driver, which waits for the device. torch itself returns cached
    memory when an allocation fails.
    """

    def setup(self, trainer: Trainer) -> None:
        """Set the variables of the process, as Lightning does."""
        self.set_nvidia_flags(trainer.local_rank)

    def teardown(self) -> None:
        """Keep the memory."""


def placement(device: torch.device) -> dict[str, object]:
    """Return the arguments of ``pl.Trainer`` that choose the device."""
    if device.type != "cuda":
        return {"accelerator": "cpu"}
    strategy = ResidentStrategy(torch.device("cuda", 0))
    return {"accelerator": ResidentAccelerator(), "strategy": strategy}


def quieten_lightning() -> None:
    """Suppress Lightning's hints about settings that a run uses on purpose."""
    for name in ("pytorch_lightning", "lightning", "lightning.pytorch"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (
        ".*does not have many workers.*",
        ".*treespec, LeafSpec.*",
        ".*GPU available.*",
    ):
        warnings.filterwarnings("ignore", message)
