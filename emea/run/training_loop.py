"""The training loop: fits, EM between them, checkpoints, and how long it will take."""

import logging
import signal
import threading
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytorch_lightning as pl
import torch
from omegaconf import DictConfig, OmegaConf

from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import LabelDataModule
from emea.errors import ConfigError
from emea.run.checkpoint import (
    Progress,
    checkpoint_errors,
    load_checkpoint,
    load_progress,
    load_turn,
    load_weights,
    save_checkpoint,
    save_turn,
)
from emea.run.console import duration
from emea.run.lightning_settings import LightningSettings
from emea.run.observer import EvaluationObserver
from emea.run.parts import Parts
from emea.run.progress import StepProgress
from emea.training.training_state import TURN_FILE, TrainingCheckpoint, TurnState

logger = logging.getLogger(__name__)


def fit(
    module: AlignmentModule,
    data: LabelDataModule,
    num_epochs: int,
    accelerator: str,
    callbacks: Sequence[pl.Callback],
    num_turns: int = 0,
    resumed: TurnState | None = None,
    lightning: LightningSettings | None = None,
) -> None:
    """Train for so many epochs on the data module's current links, then for further turns.

    A callback decides at the end of a turn what the next one trains on, and for how long. A
    second ``fit`` of one Lightning Trainer trains nothing, so each has its own. A resumed fit
    does what is left of its turn, and the turns after it; one of the callbacks restores it.

    Args:
        module: What is trained.
        data: The links, and the number of steps.
        num_epochs: Number of epochs of the first turn.
        accelerator: Lightning's name of the device.
        callbacks: Of the run; those of the config come between them and the last one, which
            saves the state after all others have acted.
        num_turns: Turns after the first.
        resumed: The state from which to continue; ``None``: the fit starts.
        lightning: What the config adds; ``None``: nothing.
    """
    if resumed is None:
        data.plan(num_epochs, module.objective.steps_per_epoch(len(data.links)))
    else:
        resumed.plan(data)
        num_turns -= resumed.turn
    added = lightning or LightningSettings()
    # without callbacks or loggers of the config, nothing reads what Lightning logs
    module.logs_losses = bool(added.callbacks or added.loggers)
    trainer = added.trainer(
        [*callbacks[:-1], *added.callbacks, *callbacks[-1:]],
        accelerator=accelerator,
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
        # Lightning answers Ctrl-C with an exit of its own, which would read as a failure
        if trainer.interrupted:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, on_interrupt)  # Lightning ignores it from then on
            raise KeyboardInterrupt from None
        raise


def quieten_lightning() -> None:
    """Keep Lightning's hints, which a run here makes on purpose, out of the log."""
    for name in ("pytorch_lightning", "lightning", "lightning.pytorch"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (
        ".*does not have many workers.*",
        ".*treespec, LeafSpec.*",
        ".*GPU available.*",
        ".*this fit will run with no optimizer.*",
    ):
        warnings.filterwarnings("ignore", message)


def seconds_per_step(module: AlignmentModule, data: LabelDataModule, num_probes: int = 2) -> float:
    """Time of a forward and backward pass on the CPU; weights and generators stay as they were."""
    state = torch.get_rng_state()
    # a step without an optimiser writes what it derives from the links
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    times = []
    module.objective.before_step(module.encoder, data.links, 0)
    for _ in range(num_probes):
        start = time.perf_counter()
        loss = module.objective(module.encoder, data.links)
        if loss.requires_grad:
            loss.backward()
        times.append(time.perf_counter() - start)
    module.zero_grad(set_to_none=True)
    for buffer, before in buffers:
        buffer.copy_(before)
    torch.set_rng_state(state)
    return min(times)


LONG_RUN_SECONDS = 60
"""The duration of runs that take longer is announced."""

FEW_STEPS = 50
"""Shorter runs are not measured beforehand: the measurement takes two steps itself."""


class Stage(NamedTuple):
    """One fit of the run.

    Args:
        name: Shown to the user.
        num_epochs: Epochs on the labels it finds; 0: weights come from elsewhere.
        num_turns: Turns after them, with mined labels.
        restart: Whether it begins with new weights.
    """

    name: str
    num_epochs: int
    num_turns: int
    restart: bool


def stages(config: DictConfig) -> list[Stage]:
    """The first training, then one stage per EM iteration."""
    model, training = config.model, config.training
    restart = bool(OmegaConf.select(model, "restart"))
    num_epochs = model.initial_epochs if restart else model.epochs_per_iteration
    num_turns = OmegaConf.select(training, "turns_per_iteration", default=0)
    first = 0 if config.initial_from else model.initial_epochs
    return [Stage("first training", first, training.turns, restart=False)] + [
        Stage(f"EM iteration {iteration}", num_epochs, num_turns, restart=restart)
        for iteration in range(1, config.em.iterations + 1)
    ]


def train(
    config: DictConfig,
    parts: Parts,
    observer: EvaluationObserver,
    device: torch.device,
    checkpoint: Path,
    resume_from: Path | None = None,
) -> None:
    """One fit per stage; the EM callback acts at the end of each.

    Args:
        config: The configuration of the run.
        parts: What is trained.
        observer: Measures and logs each stage.
        device: The device to          on.
        checkpoint: Written after each stage.
        resume_from: a checkpoint of this run to continue after; ``None``: from the beginning.
    """
    plan = stages(config)
    num_done = 0 if resume_from is None else go_on(resume_from, parts, observer, device)
    # of the links known now: more labels can only make an epoch longer
    expected = [_expected_steps(stage, parts) for stage in plan]
    announce(parts, sum(expected[num_done:]), device)
    turn_file = checkpoint.with_name(TURN_FILE)
    num_left = len(plan) - num_done
    with StepProgress(sum(expected), num_left, parts.em.phases) as progress:
        parts.em.on_phase = progress.phase
        progress.skip(sum(expected[:num_done]))
        for number, stage in enumerate(plan[num_done:], start=num_done):
            start = time.perf_counter()
            module = parts.module
            steps, epochs = module.num_steps_done, module.num_epochs_done
            progress.say(stage.name)
            if stage.num_epochs:
                resumed = _resumed_turn(turn_file, number, parts.data)
                if resumed is not None:
                    progress.skip(resumed.num_steps_done - steps)
                kept = _kept_turns(config, parts, turn_file, number, resumed)
                num_reports = parts.em.iteration
                fit_stage(stage, parts, device, [progress, kept], resumed)
                if parts.em.iteration == num_reports:
                    _stopped_before(stage, number)
                    break
            else:
                _take_over(config.initial_from, parts, device)
            elsewhere = sum(observer.history[-1]["seconds"].values())
            num_epochs = round(module.num_epochs_done - epochs)
            observer.tell(time.perf_counter() - start - elsewhere, num_epochs)
            progress.skip(max(0, expected[number] - (module.num_steps_done - steps)))
            is_last = parts.em.converged or number + 1 == len(plan)
            reached = None if is_last else Progress(number + 1, *observer.state())
            save_checkpoint(checkpoint, module, parts.data, parts.em, reached)
            if parts.em.converged:
                logger.info("Converged: the MRR on the validation links has stopped rising")
                break


def _stopped_before(stage: Stage, number: int) -> None:
    """A callback of the config kept Lightning from starting a fit, so the run ends there.

    Raises:
        ConfigError: If it was the first fit, so there is no result.
    """
    if not number:
        raise ConfigError("a callback in trainer.callbacks stopped the first training at its start")
    logger.warning("a callback in trainer.callbacks stopped the run before %s", stage.name)


def go_on(
    checkpoint: Path, parts: Parts, observer: EvaluationObserver, device: torch.device
) -> int:
    """Put a run back where a checkpoint left it; how many of its stages are done."""
    progress = load_progress(checkpoint)
    assert progress is not None, "a fit was to come after it"
    parts.module.to(device)
    load_checkpoint(checkpoint, parts.module, parts.data, parts.em)
    with checkpoint_errors(checkpoint):
        observer.restore(progress.plain, progress.arrays)
    logger.info("Resuming after stage %d", progress.num_stages)
    return progress.num_stages


def fit_stage(
    stage: Stage,
    parts: Parts,
    device: torch.device,
    callbacks: Sequence[pl.Callback],
    resumed: TurnState | None = None,
) -> None:
    """One fit, with new weights where the stage wants them.

    Args:
        stage: A stage of the run.
        parts: What is trained.
        device: The device to          on.
        callbacks: Watch, after those that act.
        resumed: What one of them restores; ``None``: the stage begins.
    """
    if stage.restart:
        parts.restart()
    # the best weights are back before labels are mined with them
    stopping = [parts.stopping] if parts.stopping else []
    fit(
        parts.module,
        parts.data,
        stage.num_epochs,
        "gpu" if device.type == "cuda" else "cpu",
        [*stopping, parts.training, parts.em, *callbacks],
        stage.num_turns,
        resumed,
        parts.lightning,
    )


def _resumed_turn(path: Path, stage: int, data: LabelDataModule) -> TurnState | None:
    """How far an earlier start has come in the midst of this stage."""
    turn = load_turn(path, stage)
    if turn is None or not turn.fits(data):
        return None
    logger.info("Resuming at step %d", turn.num_steps_done)
    return turn


def _kept_turns(
    config: DictConfig, parts: Parts, path: Path, stage: int, resumed: TurnState | None
) -> TrainingCheckpoint:
    every_minutes = OmegaConf.select(config, "trainer.checkpoint_minutes", default=5.0)
    save = partial(save_turn, path, stage)
    return TrainingCheckpoint(save, 60 * every_minutes, parts.stopping, resumed)


def _expected_steps(stage: Stage, parts: Parts) -> int:
    num_epochs = stage.num_epochs + stage.num_turns * parts.training.epochs_per_turn
    return parts.module.num_steps(num_epochs, len(parts.data.links))


def _take_over(checkpoint: str, parts: Parts, device: torch.device) -> None:
    """Start from another run's weights instead of a first fit."""
    load_weights(Path(checkpoint), parts.module, parts.data)
    parts.module.to(device)
    parts.em.between_fits(parts.module, parts.data)


def announce(parts: Parts, num_steps: int, device: torch.device) -> None:
    """Say how long training will take, where that is long."""
    if device.type == "cpu" and num_steps >= FEW_STEPS:
        expected = num_steps * seconds_per_step(parts.module, parts.data)
        if expected > LONG_RUN_SECONDS:
            logger.info(
                "%s %s of training on this CPU for %d steps (a GPU takes seconds)",
                "at most" if parts.stopping else "about",
                duration(expected),
                num_steps,
            )
