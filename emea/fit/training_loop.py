"""The training loop: fits with EM between them, and their checkpoints."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import pytorch_lightning as pl
import torch
from omegaconf import DictConfig, OmegaConf

from emea.errors import ConfigError
from emea.fit.checkpoint import (
    Progress,
    load_checkpoint,
    load_progress,
    load_turn,
    load_weights,
    save_checkpoint,
    save_turn,
)
from emea.fit.fitting import announce, fit
from emea.fit.stages import Stage, fits
from emea.fit.step_block import LabelDataModule
from emea.fit.tensor_file import checkpoint_errors
from emea.fit.training_checkpoint import TrainingCheckpoint
from emea.fit.training_state import TURN_FILE, TurnState
from emea.record.background_writer import BackgroundWriter
from emea.run.observer import EvaluationObserver
from emea.run.parts import Parts
from emea.runtime.progress import StepProgress

logger = logging.getLogger(__name__)


def train(
    config: DictConfig,
    parts: Parts,
    observer: EvaluationObserver,
    device: torch.device,
    plan: Sequence[Stage],
    checkpoint: Path,
    writer: BackgroundWriter,
    resume_from: Path | None,
) -> None:
    """Run the fits of the stages; the EM callback runs after all encoders of an ensemble.

    Args:
        config: The configuration of the run.
        parts: The objects of the run.
        observer: Measures and logs each stage.
        device: The device to compute on.
        plan: The stages of the run.
        checkpoint: The checkpoint file, which is written after each stage.
        writer: Writes checkpoints while the run continues; the last one may be unfinished at the
            end.
        resume_from: A checkpoint of this run to resume from; ``None`` means from the beginning.
    """
    num_done = 0 if resume_from is None else restore_run(resume_from, parts, observer, device)
    # estimated with the current links; more labels can only make an epoch longer
    expected = [_expected_steps(stage, parts) for stage in plan]
    announce(parts, sum(expected[num_done:]), device)
    turn_file = checkpoint.with_name(TURN_FILE)
    num_left = sum(stage.is_last for stage in plan[num_done:])
    with StepProgress(sum(expected), num_left, parts.em.phases) as progress:
        parts.em.on_phase = progress.phase
        progress.skip(sum(expected[:num_done]))
        first = _first_stage(turn_file, num_done, plan, parts)
        start, epochs = time.perf_counter(), parts.module.num_epochs_done
        for number, stage in fits(plan, first, parts):
            module = parts.module
            module.activate(stage.members)
            parts.data.activate(stage.members)
            steps, num_after = module.num_steps_done, number + len(stage.members)
            progress.say(stage.title)
            if stage.num_epochs:
                if turn_file.exists():
                    writer.wait()  # the checkpoint of the last stage removes it
                resumed = _resumed_turn(turn_file, number, stage, parts.data)
                if resumed is not None:
                    logger.info("Resuming at step %d", resumed.num_steps_done)
                    progress.skip(resumed.num_steps_done - steps)
                kept = _kept_turns(config, parts, turn_file, number, epochs, resumed, writer)
                num_reports = parts.em.iteration
                fit_stage(stage, parts, device, [progress, kept], resumed)
                if stage.is_last and parts.em.iteration == num_reports:
                    _stopped_before(stage, has_result=num_reports > 0)
                    break
            elif stage.is_last:
                _take_over(config.initial_from, parts, device)
            of_fit = sum(expected[number:num_after])
            progress.skip(max(0, of_fit - (module.num_steps_done - steps)))
            if not stage.is_last:
                continue
            elsewhere = sum(observer.history[-1]["seconds"].values())
            num_epochs = round(module.num_epochs_done - epochs)
            observer.log_iteration(time.perf_counter() - start - elsewhere, num_epochs)
            start, epochs = time.perf_counter(), module.num_epochs_done
            is_last = parts.em.converged or num_after == len(plan)
            reached = None if is_last else Progress(num_after, *observer.state())
            save_checkpoint(checkpoint, module, parts.data, parts.em, reached, writer=writer)
            if parts.em.converged:
                logger.info("Converged: the MRR on the validation links stopped improving.")
                break
    parts.module.release_graphs()


def _first_stage(turn_file: Path, num_done: int, plan: Sequence[Stage], parts: Parts) -> int:
    """Return the stage to continue with, which may be the fit of a later member of an ensemble.

    A saved turn contains the weights of all members, so earlier fits on the same labels are done.
    """
    for number, stage in fits(plan, num_done, parts):
        if _resumed_turn(turn_file, number, stage, parts.data) is not None:
            return number
        if stage.is_last:
            break
    return num_done


def _stopped_before(stage: Stage, has_result: bool) -> None:
    """Warn that a callback of the config prevented a fit, so that the run ends early.

    Raises:
        ConfigError: If EM has not run yet, so that the run would end without a result.
    """
    if not has_result:
        raise ConfigError(
            f"A callback in trainer.callbacks stopped the {stage.title} before its first step. "
            "Remove or change the callback."
        )
    logger.warning("A callback in trainer.callbacks stopped the run before %s.", stage.title)


def restore_run(
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
    """Run the fit of one stage, or of the joined stages of several members.

    Args:
        stage: A stage of the run; its members are active.
        parts: The objects of the run.
        device: The device to compute on.
        callbacks: Callbacks that only observe; they run after the others.
        resumed: The state that a callback restores; ``None`` means that the stage starts.
    """
    if stage.restart:
        for member in stage.members:
            parts.restart(member)
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


def _resumed_turn(path: Path, number: int, stage: Stage, data: LabelDataModule) -> TurnState | None:
    """Return the saved state of this fit if the run was interrupted during it."""
    turn = load_turn(path, number)
    return turn if turn is not None and turn.fits(data, stage.members) else None


def _kept_turns(
    config: DictConfig,
    parts: Parts,
    path: Path,
    stage: int,
    epochs_before: float,
    resumed: TurnState | None,
    writer: BackgroundWriter,
) -> TrainingCheckpoint:
    every_minutes = OmegaConf.select(config, "trainer.checkpoint_minutes", default=5.0)

    def save(state: TurnState) -> None:
        writer.wait()  # the checkpoint of the last stage must not remove this one
        save_turn(path, stage, state)

    return TrainingCheckpoint(save, 60 * every_minutes, epochs_before, parts.stopping, resumed)


def _expected_steps(stage: Stage, parts: Parts) -> int:
    num_epochs = stage.num_epochs + stage.num_turns * parts.training.epochs_per_turn
    num_links = len(parts.data.links)
    return sum(
        num_epochs * parts.module.steps_per_epoch(num_links, member) for member in stage.members
    )


def _take_over(checkpoint: str | None, parts: Parts, device: torch.device) -> None:
    """Use another run's weights, or those that the module has, instead of running a fit."""
    if checkpoint:
        load_weights(Path(checkpoint), parts.module, parts.data)
    parts.module.to(device)
    parts.em.between_fits(parts.module, parts.data)
