"""The objects that all fits of a run share, and early stopping."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from emea.data.arrays import IntArray
from emea.encoders.objective import Objective
from emea.evaluation.ranks import link_ranks, ranking_metrics
from emea.fit.alignment_module import AlignmentModule
from emea.fit.direct_fit import fit_directly
from emea.fit.fit_hook import FitHook, Turn
from emea.fit.lightning_settings import LightningSettings
from emea.fit.self_training import SelfTraining
from emea.fit.step_block import LabelDataModule, StepBlock
from emea.matching.similarity import Decoder
from emea.runtime.deprecated import renamed

NOTHING = (-1.0, -1.0)
"""Hit@1 and MRR before the first evaluation, lower than any real value."""


class FitStopping(FitHook):
    """Ends a turn when Hit@1 on the validation links stops rising, and keeps the best weights.

    Hit@1 ranks all targets. MRR breaks ties, which are frequent with few links. The last weights
    of a turn are evaluated as well. Each turn and each fit starts from scratch, because their
    labels differ and their metrics are not comparable.

    Args:
        validation: Held-out links.
        decoder: Maps embeddings to a similarity.
        every: Epochs between two evaluations.
        patience: Evaluations in a row without a new best after which the turn ends.
        start: Epochs before the first evaluation, for models that learn slowly at first.
    """

    def __init__(
        self,
        validation: IntArray,
        decoder: Decoder,
        every: int = 10,
        patience: int = 2,
        start: int = 0,
    ) -> None:
        self.validation = validation
        self.decoder = decoder
        self.every = every
        self.patience = patience
        self.start = start
        self.num_steps = 0
        self.num_idle = 0
        self.best = NOTHING
        self.best_weights: dict[str, Tensor] = {}

    def on_turn_start(self, turn: Turn) -> None:
        """Reset the state at the start of a turn."""
        self.num_steps = 0
        self.num_idle = 0
        self.best = NOTHING

    def on_block_end(self, turn: Turn, block: StepBlock, is_last_block: bool) -> None:
        """Evaluate the model if an evaluation is due."""
        module = turn.module
        self.num_steps += block.num_steps
        due = self.num_steps % (self.every * block.steps_per_epoch) == 0
        due &= self.num_steps > self.start * block.steps_per_epoch
        if due or is_last_block:
            found = self.measured(module)
            self.num_idle += 1
            if found > self.best:
                self.best, self.num_idle = found, 0
                weights = module.state_dict().items()
                self.best_weights = {name: value.clone() for name, value in weights}
        if self.num_idle >= self.patience:
            module.turn_is_over = True

    def on_turn_end(self, turn: Turn) -> None:
        """Load the best weights in place, because a CUDA graph refers to their addresses."""
        if self.num_idle:
            turn.module.load_state_dict(self.best_weights)
        self.best_weights = {}

    def measured(self, module: AlignmentModule) -> tuple[float, float]:
        """Compute Hit@1 and MRR on the validation links."""
        similarity = self.decoder(*module.embeddings())
        metrics = ranking_metrics(link_ranks(similarity, self.validation).in_all)
        return metrics["hit@1"], metrics["mrr"]


class BetweenFits(FitHook):
    """Interface of the hook that runs when all members of an ensemble are trained.

    Attributes:
        iteration: Number of times that it has run.
        on_phase: Called with the name of each phase that starts, for a progress display.
    """

    iteration: int
    on_phase: Callable[[str], None]

    @property
    @abstractmethod
    def phases(self) -> tuple[str, ...]:
        """The names of the phases after each fit, in order."""

    @property
    @abstractmethod
    def reason_to_stop(self) -> str | None:
        """Why no further fit is needed; ``None`` if one is."""

    @abstractmethod
    def return_to_best(self, module: AlignmentModule, data: LabelDataModule) -> None:
        """After the last fit, return to the iteration that the run answers with."""

    @abstractmethod
    def between_fits(self, module: AlignmentModule, data: LabelDataModule) -> None:
        """Evaluate the trained module and set the labels of the next fit."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return everything the next iteration depends on, as plain values and tensors."""

    @abstractmethod
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a saved state."""


@dataclass(frozen=True, eq=False)
class TrainingParts:
    """Holds the module, its labels and the callbacks.

    Args:
        module: The module that trains the encoder.
        data: The data module with the labels.
        em: The callback that runs after each fit.
        training: The self-training callback, which runs between the turns of a fit.
        stopping: The early stopping callback, which may end a turn; ``None`` if there is none.
        make_models: Create a new encoder and objective with the current random generator, one
            function for each member of an ensemble.
        lightning: Settings of every fit's Lightning Trainer.
    """

    module: AlignmentModule
    data: LabelDataModule
    em: BetweenFits
    training: SelfTraining
    stopping: FitStopping | None
    make_models: Sequence[Callable[[], tuple[nn.Module, Objective]]]
    lightning: LightningSettings = field(default_factory=LightningSettings)

    def activate(self, members: Sequence[int]) -> None:
        """Choose the members of the ensemble that the next fit trains, with their labels."""
        self.module.active_members = self.data.active_members = tuple(members)

    def restart(self, member: int = 0) -> None:
        """Let the next fit of an encoder start from new weights."""
        self.module.renew_member(member, *self.make_models[member]())

    def fit(
        self,
        num_epochs: int,
        device: torch.device,
        hooks: Sequence[FitHook],
        num_turns: int = 0,
    ) -> None:
        """Train on the data module's current links, and then for additional turns.

        At the end of a turn, a hook chooses the links and the length of the next one. Lightning
        runs the fit, unless there is nothing to optimise and the config adds nothing to it: then
        Lightning, which takes as long to import as torch, is not needed.

        Args:
            num_epochs: Number of epochs of the first turn.
            device: The device to compute on.
            hooks: The hooks of the run, which run after early stopping and before the callbacks of
                the config.
            num_turns: Number of turns after the first.
        """
        module = self.module
        data = self.data
        data.plan(num_epochs, module.steps_per_epoch(len(data.links)))
        # early stopping restores the best weights before labels are mined
        stopping = [self.stopping] if self.stopping else []
        all_hooks = [*stopping, *hooks]
        has_optimizer = any(map(module.has_optimizer, module.active_members))
        if self.lightning.are_empty and not has_optimizer:
            fit_directly(module, data, device, 1 + num_turns, all_hooks)
            return
        from emea.fit.lightning_trainer import fit_with_lightning

        fit_with_lightning(
            module, data, device, 1 + num_turns, hooks=all_hooks, added=self.lightning
        )


if not TYPE_CHECKING:
    __getattr__ = renamed(__name__, {"EarlyStopping": "FitStopping"}, removal="0.4")
