"""The objects that all fits of a run share."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytorch_lightning as pl
from torch import nn

from emea.encoders.objective import Objective
from emea.fit.alignment_module import AlignmentModule
from emea.fit.early_stopping import EarlyStopping
from emea.fit.lightning_trainer import LightningSettings
from emea.fit.self_training import SelfTraining
from emea.fit.step_block import LabelDataModule


class BetweenFits(pl.Callback):
    """Interface of the callback that runs when all members of an ensemble are trained.

    Attributes:
        iteration: Number of times that it has run.
        on_phase: Called with the name of each phase that starts, for a progress display.
    """

    iteration: int
    on_phase: Callable[[str], None]

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
    stopping: EarlyStopping | None
    make_models: Sequence[Callable[[], tuple[nn.Module, Objective]]]
    lightning: LightningSettings = field(default_factory=LightningSettings)

    def activate(self, members: Sequence[int]) -> None:
        """Choose the members of the ensemble that the next fit trains, with their labels."""
        self.module.activate(members)
        self.data.activate(members)

    def restart(self, member: int = 0) -> None:
        """Let the next fit of an encoder start from new weights."""
        self.module.renew_member(member, *self.make_models[member]())
