"""Which settings under ``trainer`` the run reads itself, and which it passes on to Lightning."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from omegaconf import DictConfig, OmegaConf

from emea.fit.settings import TrainerSettings

OWN = ("name", *(one.name for one in fields(TrainerSettings)))
"""Settings that the run itself reads."""

PASSED_ON = ("max_time", "log_every_n_steps", "limit_train_batches", "detect_anomaly")
"""Arguments of ``pl.Trainer`` that have an effect here."""


def lightning_options(trainer: DictConfig) -> dict[str, Any]:
    """Return the arguments of ``pl.Trainer`` that the config sets."""
    values: Any = OmegaConf.to_container(trainer, resolve=True)
    return {key: values[key] for key in PASSED_ON if values.get(key) is not None}


def trainer_problems(config: DictConfig) -> Iterator[str]:
    """Yield a sentence for each setting under ``trainer`` that would have no effect."""
    for key in config.trainer:
        if key not in OWN and key not in PASSED_ON:
            yield (
                f"trainer.{key} has no effect: the run sets Lightning's arguments itself, except "
                f"for {', '.join(PASSED_ON)} (docs/lightning.md)"
            )
