"""The training loop: the stages of a run, the fits they join, and checkpoints."""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy.typing as npt
import torch

from emea.errors import ConfigError
from emea.fit.checkpoint import (
    Progress,
    load_checkpoint,
    load_progress,
    load_weights,
    save_checkpoint,
)
from emea.fit.fit_hook import FitHook, Turn
from emea.fit.step_block import StepBlock
from emea.fit.tensor_file import checkpoint_errors
from emea.fit.training_parts import TrainingParts
from emea.record.checked_files import BackgroundWriter
from emea.runtime.progress import StepProgress

logger = logging.getLogger(__name__)


class Stage(NamedTuple):
    """Describes the training of one encoder, or of several that :func:`fits` has joined.

    Args:
        name: The name that is shown to the user.
        num_epochs: Number of epochs on the current labels; 0 if the weights are loaded or kept.
        num_turns: Number of turns after them, with mined labels.
        restart: Whether the fit starts from new weights.
        members: The encoders of an ensemble that are trained, side by side if there are several.
        is_last: Whether EM runs afterwards; it waits for all members of an ensemble.
    """

    name: str
    num_epochs: int
    num_turns: int
    restart: bool
    members: tuple[int, ...] = (0,)
    is_last: bool = True

    @property
    def title(self) -> str:
        """The name with the numbers of the encoders, if the run has several."""
        first = self.members[0] + 1
        last = self.members[-1] + 1
        if self.members == (0,) and self.is_last:
            return self.name
        if first == last:
            return f"{self.name}, encoder {first}"
        return f"{self.name}, encoders {first} to {last}"


MAX_JOINT_ENTITIES = 400_000
"""Entities of a fit, counted once per member. A step on more entities fills a GPU by itself, and
each member needs its own memory."""


def fits(
    plan: Sequence[Stage], first: int, parts: TrainingParts
) -> Iterator[tuple[int, Stage]]:
    """Yield the fits of a plan: the number of their first stage, and the stages joined into one.

    Members of an ensemble are trained side by side if they can be. That depends on the labels, so
    a fit is determined when its turn comes.

    Args:
        plan: All stages of the run.
        first: Number of the first stage.
        parts: The objects of the run.
    """
    while first < len(plan):
        joined = plan[first]
        for stage in plan[first + 1 :]:
            if not _can_join(joined, stage, parts):
                break
            joined = joined._replace(
                members=(*joined.members, *stage.members), is_last=stage.is_last
            )
        yield first, joined
        first += len(joined.members)


def _can_join(stage: Stage, other: Stage, parts: TrainingParts) -> bool:
    """Return whether the members of two consecutive stages can be trained side by side.

    They must need the same steps, and nothing that depends on one of them may happen in between.
    """
    module = parts.module
    data = parts.data
    members = (*stage.members, *other.members)
    if stage.is_last or stage.num_turns or parts.stopping is not None:
        return False
    if stage._replace(members=(), is_last=True) != other._replace(
        members=(), is_last=True
    ):
        return False
    if not all(map(module.has_optimizer, members)):
        return False
    if len(members) * (module.num_source + module.num_target) > MAX_JOINT_ENTITIES:
        return False
    steps = {
        module.steps_per_epoch(len(data.labels_of(one).links), one) for one in members
    }
    return len(steps) == 1


class StageObserver(Protocol):
    """Interface of the object that measures each stage.

    Attributes:
        history: One entry per stage; each has ``seconds`` by phase.
    """

    history: list[dict[str, Any]]

    def log_iteration(self, neural_seconds: float, num_epochs: int) -> None:
        """Log the last stage, with the duration and the epochs of its fits."""

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return all measurements so far, as plain values and as arrays."""

    def restore(
        self, plain: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]
    ) -> None:
        """Continue from a state."""


class CountedBlocks(FitHook):
    """Counts the steps of each block in a progress display."""

    def __init__(self, progress: StepProgress) -> None:
        self._progress = progress

    def on_block_end(self, turn: Turn, block: StepBlock, is_last_block: bool) -> None:
        """Count the steps of all encoders."""
        self._progress.count(block.total_steps)


@dataclass(frozen=True, eq=False)
class TrainingLoop:
    """Runs the fits of all stages; EM runs after all encoders of an ensemble.

    Args:
        parts: The module, its labels and the callbacks.
        observer: Measures and logs each stage.
        device: The device to compute on.
        checkpoint: The checkpoint file, which is written after each stage.
        writer: Writes checkpoints while the run continues; the last one may be unfinished at the
            end.
        initial_from: A checkpoint of another run whose weights replace the first training.
    """

    parts: TrainingParts
    observer: StageObserver
    device: torch.device
    checkpoint: Path
    writer: BackgroundWriter
    initial_from: str | None

    def run(self, plan: Sequence[Stage], resume_from: Path | None) -> None:
        """Run the stages of a plan.

        Args:
            plan: The stages of the run.
            resume_from: A checkpoint of this run to resume from; ``None`` means from the beginning.
        """
        parts = self.parts
        module = self.parts.module
        num_done = 0 if resume_from is None else self._restored(resume_from, plan)
        # estimated with the current links; more labels can only make an epoch longer
        expected = [_expected_steps(stage, parts) for stage in plan]
        num_stages = sum(stage.is_last for stage in plan[num_done:])
        shown = StepProgress(
            sum(expected), num_stages=num_stages, phases=parts.em.phases
        )
        with shown as progress:
            parts.em.on_phase = progress.phase
            progress.skip(sum(expected[:num_done]))
            start = time.perf_counter()
            epochs = module.num_epochs_done
            for number, stage in fits(plan, num_done, parts):
                steps = module.num_steps_done
                num_after = number + len(stage.members)
                progress.say(stage.title)
                if not self._trained(stage, progress):
                    break
                of_fit = sum(expected[number:num_after])
                progress.skip(max(0, of_fit - (module.num_steps_done - steps)))
                if not stage.is_last:
                    continue
                elsewhere = sum(self.observer.history[-1]["seconds"].values())
                num_epochs = round(module.num_epochs_done - epochs)
                self.observer.log_iteration(
                    time.perf_counter() - start - elsewhere, num_epochs
                )
                start = time.perf_counter()
                epochs = module.num_epochs_done
                reason = parts.em.reason_to_stop
                is_over = num_after == len(plan) or reason is not None
                if is_over:
                    parts.em.return_to_best(module, parts.data)
                saved = None if is_over else Progress(num_after, *self.observer.state())
                save_checkpoint(self.checkpoint, parts, saved, self.writer)
                if is_over and num_after < len(plan):
                    logger.info("EM stops: %s.", reason)
                    break
        module.graph_memory.release()

    def _trained(self, stage: Stage, progress: StepProgress) -> bool:
        """Run or replace the fit of a stage; return whether the run continues."""
        parts = self.parts
        num_reports = self.parts.em.iteration
        if stage.num_epochs:
            fit_stage(stage, parts, self.device, [CountedBlocks(progress)])
        elif stage.is_last:
            parts.activate(stage.members)
            if self.initial_from:
                load_weights(Path(self.initial_from).resolve(), parts)
            parts.module.to(self.device)
            parts.em.between_fits(parts.module, parts.data)
        if not stage.is_last or parts.em.iteration > num_reports:
            return True
        if not num_reports:  # the run would end without a result
            raise ConfigError(
                f"A callback in trainer.callbacks stopped the {stage.title} before its first step. "
                "Remove or change the callback."
            )
        logger.warning(
            "A callback in trainer.callbacks stopped the run before %s.", stage.title
        )
        return False

    def _restored(self, checkpoint: Path, plan: Sequence[Stage]) -> int:
        """Restore a run from a checkpoint, and return the number of its finished stages."""
        progress = load_progress(checkpoint)
        assert progress is not None, "a fit was to come after it"
        self.parts.module.to(self.device)
        load_checkpoint(checkpoint, self.parts)
        with checkpoint_errors(checkpoint):
            self.observer.restore(progress.plain, progress.arrays)
        done = plan[progress.num_stages - 1].name
        logger.info("Resuming after %s", done.replace("first", "the first"))
        return progress.num_stages


def fit_stage(
    stage: Stage, parts: TrainingParts, device: torch.device, hooks: Sequence[FitHook]
) -> None:
    """Run the fit of one stage, or of the joined stages of several members.

    Args:
        stage: A stage of the run.
        parts: The module, its labels and the callbacks.
        device: The device to compute on.
        hooks: Hooks that only observe; they run after the others.
    """
    parts.activate(stage.members)
    if stage.restart:
        for member in stage.members:
            parts.restart(member)
    own = [parts.training, parts.em]
    parts.fit(stage.num_epochs, device, [*own, *hooks], stage.num_turns)


def _expected_steps(stage: Stage, parts: TrainingParts) -> int:
    num_epochs = stage.num_epochs + stage.num_turns * parts.training.epochs_per_turn
    num_links = len(parts.data.links)
    return sum(
        num_epochs * parts.module.steps_per_epoch(num_links, member)
        for member in stage.members
    )
