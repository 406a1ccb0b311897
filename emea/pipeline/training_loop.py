"""The first fit and one fit per EM iteration."""

import logging
import time
from pathlib import Path

import torch
from omegaconf import DictConfig

from emea.pipeline.checkpoint import load_weights, save_checkpoint
from emea.pipeline.estimate import duration, seconds_per_step
from emea.pipeline.fitting import fit
from emea.pipeline.observer import TestObserver
from emea.pipeline.parts import Parts
from emea.pipeline.progress import StepProgress

logger = logging.getLogger(__name__)

LONG_RUN_SECONDS = 60
"""Runs expected to take longer say so before they start."""

FEW_STEPS = 50
"""Shorter runs are not measured beforehand: the measurement takes two steps itself."""


def train(
    config: DictConfig, parts: Parts, observer: TestObserver, device: torch.device, checkpoint: Path
) -> None:
    """The first fit, then one fit per EM iteration; the callback acts between them."""
    first = 0 if config.initial_from else config.model.initial_epochs
    epochs = [first] + [config.model.epochs_per_iteration] * config.em.iterations
    # of the links known now: the E-step's labels can only make an epoch longer
    expected = parts.module.num_steps(sum(epochs), len(parts.data.links))
    _announce(parts, expected, device)
    with StepProgress(expected) as progress:
        for iteration, num_epochs in enumerate(epochs):
            num_steps = parts.module.num_steps(num_epochs, len(parts.data.links))
            progress.say("first training" if iteration == 0 else f"EM iteration {iteration}")
            start = time.perf_counter()
            if num_steps:
                fit(
                    parts.module,
                    parts.data,
                    num_steps,
                    "gpu" if device.type == "cuda" else "cpu",
                    [parts.em, progress],
                )
            else:
                _take_over(config.initial_from, parts, device)
            elsewhere = sum(observer.history[-1]["seconds"].values())
            observer.tell(time.perf_counter() - start - elsewhere)
            save_checkpoint(checkpoint, parts.module, parts.data, parts.em)
            if parts.em.converged:
                logger.info("converged: no better MRR on the validation links")
                break


def _take_over(checkpoint: str, parts: Parts, device: torch.device) -> None:
    """Start from another run's weights instead of a first fit."""
    load_weights(Path(checkpoint), parts.module, parts.data)
    parts.module.to(device)
    parts.em.between_fits(parts.module, parts.data)


def _announce(parts: Parts, num_steps: int, device: torch.device) -> None:
    if device.type == "cpu" and num_steps >= FEW_STEPS:
        expected = num_steps * seconds_per_step(parts.module, parts.data)
        if expected > LONG_RUN_SECONDS:
            logger.info(
                "about %s of training on this CPU for %d steps (a GPU takes seconds)",
                duration(expected),
                num_steps,
            )
