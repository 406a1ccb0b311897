"""The objects that all fits of a run share."""

import signal
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytorch_lightning as pl
import torch
from torch import nn

from emea.encoders.objective import Objective
from emea.fit.alignment_module import AlignmentModule
from emea.fit.early_stopping import EarlyStopping
from emea.fit.lightning_trainer import LightningSettings, placement
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

    def fit(
        self,
        num_epochs: int,
        device: torch.device,
        callbacks: Sequence[pl.Callback],
        num_turns: int = 0,
    ) -> None:
        """Train on the data module's current links, and then for additional turns.

        At the end of a turn, a callback chooses the links and the length of the next one. A second
        ``fit`` of a Lightning Trainer would train nothing, so each fit has its own Trainer.

        Args:
            num_epochs: Number of epochs of the first turn.
            device: The device to compute on.
            callbacks: The callbacks of the run, which run after early stopping and before those of
                the config.
            num_turns: Number of turns after the first.
        """
        module, data, added = self.module, self.data, self.lightning
        data.plan(num_epochs, module.steps_per_epoch(len(data.links)))
        # only callbacks or loggers of the config read what Lightning logs
        module.logs_losses = bool(added.callbacks or added.loggers)
        # early stopping restores the best weights before labels are mined
        stopping = [self.stopping] if self.stopping else []
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
