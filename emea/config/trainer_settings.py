"""Settings under ``trainer``: some are for the run, the others for Lightning."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from omegaconf import DictConfig, OmegaConf

from emea.config.settings.execution import TrainerSettings

OWN = ("name", *(one.name for one in fields(TrainerSettings)))
"""Settings that the run itself reads."""

PASSED_ON = ("max_time", "log_every_n_steps", "limit_train_batches", "detect_anomaly")
"""Arguments of ``pl.Trainer`` that have an effect here."""

MANUAL = "Lightning ignores it in manual optimisation, which training uses here"
EPOCHS = "the run sets it: use model.initial_epochs and model.epochs_per_iteration"
ONE_DEVICE = "a run uses one device: choose it with trainer=cpu or trainer=gpu"
NO_VALIDATION = "there is no validation loop: see model.early_stopping"

REASONS = {
    **dict.fromkeys(
        ("gradient_clip_val", "gradient_clip_algorithm", "accumulate_grad_batches"), MANUAL
    ),
    **dict.fromkeys(("max_epochs", "min_epochs", "max_steps", "min_steps"), EPOCHS),
    **dict.fromkeys(("devices", "num_nodes", "strategy", "sync_batchnorm"), ONE_DEVICE),
    **dict.fromkeys(
        (
            *("limit_val_batches", "val_check_interval", "check_val_every_n_epoch"),
            "num_sanity_val_steps",
        ),
        NO_VALIDATION,
    ),
    "precision": "training runs in single precision",
    "enable_progress_bar": "the run shows its own progress",
    "enable_checkpointing": "the run writes its own checkpoints: see trainer.checkpoint_minutes",
    "reload_dataloaders_every_n_epochs": "the run sets it: labels change between epochs",
}
"""Why some arguments of ``pl.Trainer`` cannot be set."""


def lightning_options(trainer: DictConfig) -> dict[str, Any]:
    """Return the arguments of ``pl.Trainer`` that the config sets."""
    values: Any = OmegaConf.to_container(trainer, resolve=True)
    return {key: values[key] for key in PASSED_ON if values.get(key) is not None}


def trainer_problems(config: DictConfig) -> Iterator[str]:
    """Yield a sentence for each setting under ``trainer`` that would have no effect."""
    for key in config.trainer:
        if key in OWN or key in PASSED_ON:
            continue
        reason = REASONS.get(str(key), f"further settings are {', '.join(PASSED_ON)}")
        yield f"trainer.{key} has no effect: {reason} (docs/lightning.md)"
