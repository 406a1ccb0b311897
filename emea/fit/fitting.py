"""One fit by Lightning, and an estimate of its time on a CPU."""

import logging
import signal
import threading
import time
import warnings
from collections.abc import Sequence

import pytorch_lightning as pl
import torch

from emea.fit.alignment_module import AlignmentModule
from emea.fit.lightning_trainer import placement
from emea.fit.step_block import LabelDataModule
from emea.fit.training_parts import TrainingParts
from emea.runtime.console import duration

logger = logging.getLogger(__name__)

LONG_RUN_SECONDS = 60
"""The duration of runs that take longer is announced."""

FEW_STEPS = 50
"""Shorter runs are not measured beforehand: the measurement takes two steps itself."""


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


def seconds_per_step(module: AlignmentModule, data: LabelDataModule) -> float:
    """Return the time of a forward and backward pass on the CPU, without changing any state."""
    state = torch.get_rng_state()
    # a step without an optimiser stores what it derives from the links
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    times = []
    objective, encoder = module.trained()[0]
    objective.before_step(encoder, data.links, 0)
    for _ in range(2):  # the first time may include the compilation of kernels
        start = time.perf_counter()
        loss = objective(encoder, data.links)
        if loss.requires_grad:
            loss.backward()
        times.append(time.perf_counter() - start)
    module.zero_grad(set_to_none=True)
    for buffer, before in buffers:
        buffer.copy_(before)
    torch.set_rng_state(state)
    return min(times)


def announce(parts: TrainingParts, num_steps: int, device: torch.device) -> None:
    """Log how long training will take, if it takes long."""
    if device.type == "cpu" and num_steps >= FEW_STEPS:
        expected = num_steps * seconds_per_step(parts.module, parts.data)
        if expected > LONG_RUN_SECONDS:
            logger.info(
                "Training for %d steps takes %s %s on this CPU. A GPU takes seconds.",
                num_steps,
                "at most" if parts.stopping else "about",
                duration(expected),
            )
