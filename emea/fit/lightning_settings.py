"""Settings under ``trainer`` for Lightning: options of its Trainer, callbacks and loggers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from typing import Any

import pytorch_lightning as pl
from lightning_fabric.utilities import registry as lightning_registry
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.loggers import Logger
from pytorch_lightning.utilities.exceptions import (  # type: ignore[attr-defined]
    MisconfigurationException,
)

from emea.config.instantiate import factory
from emea.config.settings.execution import lightning_options
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

    @classmethod
    def of(cls, trainer: DictConfig) -> "LightningSettings":
        """Build the objects from the config's ``trainer``; all fits of a run use them.

        Raises:
            ConfigError: If a class cannot be used, or is not a callback or logger.
        """
        callbacks: list[pl.Callback] = _built(trainer, "callbacks", pl.Callback)
        loggers: list[Logger] = _built(trainer, "logger", Logger)
        return cls(callbacks, loggers, lightning_options(trainer))

    def trainer(self, callbacks: Sequence[pl.Callback], **given: Any) -> pl.Trainer:
        """Return a Lightning Trainer with the run's callbacks and arguments, and these settings.

        Raises:
            ConfigError: If Lightning does not accept a setting.
        """
        # a block is a batch, so Lightning's default of 50 would skip most of a short fit
        options = {"log_every_n_steps": 1, **self.options}
        try:
            with _entry_points_read_once():
                return pl.Trainer(
                    callbacks=list(callbacks),
                    logger=list(self.loggers) or False,
                    **given,
                    **options,
                )
        except (MisconfigurationException, TypeError, ValueError) as error:
            if not self.options:
                raise
            names = ", ".join(f"trainer.{name}" for name in self.options)
            raise ConfigError(f"Lightning does not accept {names}: {error}") from error


@contextmanager
def _entry_points_read_once() -> Iterator[None]:
    """Let Lightning use the entry points of installed packages that it found before.

    Each Trainer looks for packages that add callbacks, and reads a file of every package, which
    takes nine tenths of the time to create a Trainer.
    """
    registry: Any = lightning_registry
    original = getattr(registry, "entry_points", None)
    if original is None:  # in other versions of Lightning
        yield
        return
    registry.entry_points = _known_entry_points
    try:
        yield
    finally:
        registry.entry_points = original


@cache
def _known_entry_points(group: str) -> EntryPoints:
    return entry_points(group=group)


def _built(trainer: DictConfig, key: str, kind: type) -> list[Any]:
    """Return the objects of a list of ``_target_`` nodes, each of which must be of this kind."""
    found = []
    for node in OmegaConf.select(trainer, key) or ():
        made = factory(node, keep_name=True)()
        if not isinstance(made, kind):
            raise ConfigError(
                f"trainer.{key} names {node._target_}, which is not a {kind.__name__}."
            )
        found.append(made)
    return found
