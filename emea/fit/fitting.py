"""One fit by Lightning."""

import logging
import signal
import threading
import warnings
from collections.abc import Sequence

import pytorch_lightning as pl
import torch

from emea.fit.lightning_trainer import placement
from emea.fit.training_parts import TrainingParts


def fit(
    parts: TrainingParts,
    num_epochs: int,
    device: torch.device,
    callbacks: Sequence[pl.Callback],
    num_turns: int = 0,
) -> None:
    """Train on the data module's current links, and then for additional turns.

    At the end of a turn, a callback chooses the links and the length of the next one. A second
    ``fit`` of a Lightning Trainer would train nothing, so each fit has its own Trainer.

    Args:
        parts: The module, its labels, early stopping and the settings for Lightning.
        num_epochs: Number of epochs of the first turn.
        device: The device to compute on.
        callbacks: The callbacks of the run, which run after early stopping and before those of
            the config.
        num_turns: Number of turns after the first.
    """
    module, data, added = parts.module, parts.data, parts.lightning
    data.plan(num_epochs, module.steps_per_epoch(len(data.links)))
    # only callbacks or loggers of the config read what Lightning logs
    module.logs_losses = bool(added.callbacks or added.loggers)
    # early stopping restores the best weights before labels are mined
    stopping = [parts.stopping] if parts.stopping else []
    trainer = added.trainer(
        [*stopping, *callbacks, *added.callbacks],
        **placement(device),
        devices=1,
        max_epochs=1 + num_turns,
        reload_dataloaders_every_n_epochs=1,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        trainer.fit(module, datamodule=data)
    except SystemExit:
        # Lightning handles Ctrl-C with its own exit, which would look like a failure
        if trainer.interrupted:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, on_interrupt)  # Lightning disabled the handler
            raise KeyboardInterrupt from None
        raise


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
