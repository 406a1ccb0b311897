"""The training loop: fits with EM between them, checkpoints and an estimate of the time."""

import logging
import signal
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytorch_lightning as pl
import torch
from omegaconf import DictConfig, OmegaConf

from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import LabelDataModule
from emea.errors import ConfigError
from emea.record.background_writer import BackgroundWriter
from emea.run.checkpoint import (
    Progress,
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
from emea.run.parts import Parts, member_models
from emea.run.progress import StepProgress
from emea.run.resident_strategy import placement
from emea.run.tensor_file import checkpoint_errors
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
    """Train on the data module's current links, and then for additional turns.

    At the end of a turn, a callback chooses the links and the length of the next one. A second
    ``fit`` of a Lightning Trainer would train nothing, so each fit has its own Trainer. A resumed
    fit runs the rest of its turn and the turns after it; one of the callbacks restores its state.

    Args:
        module: The module to train.
        data: The data module with the links and the number of steps.
        num_epochs: Number of epochs of the first turn.
        accelerator: Lightning's name of the device.
        callbacks: The callbacks of the run. Those of the config are inserted before the last one,
            which saves the state after all others.
        num_turns: Number of turns after the first.
        resumed: The state to resume from; ``None`` means that the fit starts from the beginning.
        lightning: Settings for Lightning from the config, if any.
    """
    if resumed is None:
        data.plan(num_epochs, module.objective.steps_per_epoch(len(data.links)))
    else:
        resumed.plan(data)
        num_turns -= resumed.turn
    added = lightning or LightningSettings()
    # only callbacks or loggers of the config read what Lightning logs
    module.logs_losses = bool(added.callbacks or added.loggers)
    trainer = added.trainer(
        [*callbacks[:-1], *added.callbacks, *callbacks[-1:]],
        **placement(accelerator),
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
        ".*this fit will run with no optimizer.*",
    ):
        warnings.filterwarnings("ignore", message)


def seconds_per_step(module: AlignmentModule, data: LabelDataModule, num_probes: int = 2) -> float:
    """Return the time of a forward and backward pass on the CPU, without changing any state."""
    state = torch.get_rng_state()
    # a step without an optimiser stores what it derives from the links
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
    """Describes one fit of the run.

    Args:
        name: The name that is shown to the user.
        num_epochs: Number of epochs on the current labels; 0 if the weights are loaded or kept.
        num_turns: Number of turns after them, with mined labels.
        restart: Whether the fit starts from new weights.
        member: The encoder of an ensemble that is trained.
        is_last: Whether EM runs afterwards; it waits for all members of an ensemble.
    """

    name: str
    num_epochs: int
    num_turns: int
    restart: bool
    member: int = 0
    is_last: bool = True


def stages(config: DictConfig) -> list[Stage]:
    """Return the first training, then the fits of each EM iteration, one for each encoder."""
    models, training = member_models(config), config.training
    num_turns = OmegaConf.select(training, "turns_per_iteration", default=0)
    plan = []
    for iteration in range(config.em.iterations + 1):
        name = f"EM iteration {iteration}" if iteration else "first training"
        for member, model in enumerate(models):
            restart = iteration > 0 and restarts(config, iteration, member)
            num_epochs = model.epochs_per_iteration
            if restart or not iteration:
                num_epochs = model.initial_epochs
            if not iteration and config.initial_from:
                num_epochs = 0
            plan.append(
                Stage(
                    name if len(models) == 1 else f"{name}, encoder {member + 1}",
                    num_epochs,
                    num_turns if iteration else training.turns,
                    restart,
                    member,
                    is_last=member == len(models) - 1,
                )
            )
    return plan


def local_stages(config: DictConfig) -> list[Stage]:
    """Return the stages of an update that recomputes some entities only.

    Weights are kept from the earlier run. An encoder without weights derives its embeddings from
    the labels in each stage.
    """
    num_epochs = 0 if config.model.optimizer else config.model.initial_epochs
    numbers = range(1, config.em.iterations + 1) if config.em.iterations else (1,)
    return [Stage(f"update {number}", num_epochs, num_turns=0, restart=False) for number in numbers]


def restarts(config: DictConfig, iteration: int, member: int) -> bool:
    """Return whether an encoder starts an EM iteration with new weights.

    With ``em.restart_every`` the members of an ensemble take turns, so one of them is renewed at
    a time.
    """
    models = member_models(config)
    if OmegaConf.select(models[member], "restart"):
        return True
    every: int | None = OmegaConf.select(config, "em.restart_every")
    if not every or iteration % every:
        return False
    return (iteration // every - 1) % len(models) == member


def train(
    config: DictConfig,
    parts: Parts,
    observer: EvaluationObserver,
    device: torch.device,
    checkpoint: Path,
    writer: BackgroundWriter,
    resume_from: Path | None = None,
    plan: Sequence[Stage] | None = None,
) -> None:
    """Run one fit per stage; the EM callback runs at the end of each.

    Args:
        config: The configuration of the run.
        parts: The objects of the run.
        observer: Measures and logs each stage.
        device: The device to compute on.
        checkpoint: The checkpoint file, which is written after each stage.
        writer: Writes checkpoints while the run continues; the last one may be unfinished at the
            end.
        resume_from: A checkpoint of this run to resume from; ``None`` means from the beginning.
        plan: The stages; ``None`` means those of the config.
    """
    plan = stages(config) if plan is None else plan
    num_done = 0 if resume_from is None else go_on(resume_from, parts, observer, device)
    # estimated with the current links; more labels can only make an epoch longer
    expected = [_expected_steps(stage, parts) for stage in plan]
    announce(parts, sum(expected[num_done:]), device)
    turn_file = checkpoint.with_name(TURN_FILE)
    num_left = len(plan) - num_done
    with StepProgress(sum(expected), num_left, parts.em.phases) as progress:
        parts.em.on_phase = progress.phase
        progress.skip(sum(expected[:num_done]))
        first = _first_stage(turn_file, num_done, plan)
        start, epochs = time.perf_counter(), parts.module.num_epochs_done
        for number, stage in enumerate(plan[first:], start=first):
            module = parts.module
            module.activate(stage.member)
            parts.data.activate(stage.member)
            steps = module.num_steps_done
            progress.say(stage.name)
            if stage.num_epochs:
                if turn_file.exists():
                    writer.wait()  # the checkpoint of the last stage removes it
                resumed = _resumed_turn(turn_file, number, parts.data)
                if resumed is not None:
                    progress.skip(resumed.num_steps_done - steps)
                kept = _kept_turns(config, parts, turn_file, number, resumed, writer)
                num_reports = parts.em.iteration
                fit_stage(stage, parts, device, [progress, kept], resumed)
                if stage.is_last and parts.em.iteration == num_reports:
                    _stopped_before(stage, number)
                    break
            elif stage.is_last:
                _take_over(config.initial_from, parts, device)
            progress.skip(max(0, expected[number] - (module.num_steps_done - steps)))
            if not stage.is_last:
                continue
            elsewhere = sum(observer.history[-1]["seconds"].values())
            num_epochs = round(module.num_epochs_done - epochs)
            observer.tell(time.perf_counter() - start - elsewhere, num_epochs)
            start, epochs = time.perf_counter(), module.num_epochs_done
            is_last = parts.em.converged or number + 1 == len(plan)
            reached = None if is_last else Progress(number + 1, *observer.state())
            save_checkpoint(checkpoint, module, parts.data, parts.em, reached, writer=writer)
            if parts.em.converged:
                logger.info("Converged: the MRR on the validation links stopped improving.")
                break
    parts.module.release_graphs()


def _first_stage(turn_file: Path, num_done: int, plan: Sequence[Stage]) -> int:
    """Return the stage to continue with, which may be the fit of a later member of an ensemble.

    A saved turn contains the weights of all members, so earlier fits on the same labels are done.
    """
    for number in range(num_done, len(plan)):
        if plan[number].member and load_turn(turn_file, number) is not None:
            return number
        if plan[number].is_last:
            break
    return num_done


def _stopped_before(stage: Stage, number: int) -> None:
    """Warn that a callback of the config prevented a fit, so that the run ends early.

    Raises:
        ConfigError: If it was the first fit, because then there is no result.
    """
    if not number:
        raise ConfigError(
            "A callback in trainer.callbacks stopped the first training before its first step. "
            "Remove or change the callback."
        )
    logger.warning("A callback in trainer.callbacks stopped the run before %s.", stage.name)


def go_on(
    checkpoint: Path, parts: Parts, observer: EvaluationObserver, device: torch.device
) -> int:
    """Restore a run from a checkpoint, and return the number of its finished stages."""
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
    """Run the fit of one stage.

    Args:
        stage: A stage of the run.
        parts: The objects of the run.
        device: The device to compute on.
        callbacks: Callbacks that only observe; they run after the others.
        resumed: The state that a callback restores; ``None`` means that the stage starts.
    """
    if stage.restart:
        parts.restart(stage.member)
    # early stopping restores the best weights before labels are mined
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
    """Return the saved state of this stage if the run was interrupted during it."""
    turn = load_turn(path, stage)
    if turn is None or not turn.fits(data):
        return None
    logger.info("Resuming at step %d", turn.num_steps_done)
    return turn


def _kept_turns(
    config: DictConfig,
    parts: Parts,
    path: Path,
    stage: int,
    resumed: TurnState | None,
    writer: BackgroundWriter,
) -> TrainingCheckpoint:
    every_minutes = OmegaConf.select(config, "trainer.checkpoint_minutes", default=5.0)

    def save(state: TurnState) -> None:
        writer.wait()  # the checkpoint of the last stage must not remove this one
        save_turn(path, stage, state)

    return TrainingCheckpoint(save, 60 * every_minutes, parts.stopping, resumed)


def _expected_steps(stage: Stage, parts: Parts) -> int:
    num_epochs = stage.num_epochs + stage.num_turns * parts.training.epochs_per_turn
    parts.module.activate(stage.member)
    return parts.module.num_steps(num_epochs, len(parts.data.links))


def _take_over(checkpoint: str | None, parts: Parts, device: torch.device) -> None:
    """Use another run's weights, or those that the module has, instead of running a fit."""
    if checkpoint:
        load_weights(Path(checkpoint), parts.module, parts.data)
    parts.module.to(device)
    parts.em.between_fits(parts.module, parts.data)


def announce(parts: Parts, num_steps: int, device: torch.device) -> None:
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
