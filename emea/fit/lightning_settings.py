"""What a config adds to the Lightning Trainer of each fit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emea.errors import ConfigError

if TYPE_CHECKING:
    import pytorch_lightning as pl
    from pytorch_lightning.loggers import Logger


@dataclass(frozen=True, eq=False)
class LightningSettings:
    """Holds what a config adds to each fit.

    Args:
        callbacks: Callbacks that run after those of the run.
        loggers: Loggers that receive what the module logs.
        options: Additional arguments of ``pl.Trainer``.
    """

    callbacks: "Sequence[pl.Callback]" = ()
    loggers: "Sequence[Logger]" = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def are_empty(self) -> bool:
        """Whether the config adds nothing, so that a fit may run without Lightning."""
        return not (self.callbacks or self.loggers or self.options)

    def trainer(self, callbacks: "Sequence[pl.Callback]", **given: Any) -> "pl.Trainer":
        """Return a Lightning Trainer with the run's callbacks and arguments, and these settings.

        Raises:
            ConfigError: If Lightning does not accept a setting.
        """
        # Lightning takes as long to import as torch, and many commands do not train
        import pytorch_lightning as pl
        from pytorch_lightning.utilities.exceptions import (  # type: ignore[attr-defined]
            MisconfigurationException,
        )

        # a block is a batch, so Lightning's default of 50 would skip most of a short fit
        options = {"log_every_n_steps": 1, **self.options}
        try:
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
