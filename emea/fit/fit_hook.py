"""The moments of a fit at which other code runs: early stopping, self-training, EM and progress."""

from typing import NamedTuple

from emea.fit.alignment_module import AlignmentModule
from emea.fit.step_block import LabelDataModule, StepBlock


class Turn(NamedTuple):
    """A turn of a fit: all blocks on one set of labels.

    Args:
        module: The module that is trained.
        data: Its labels, which a hook may change for the next turn.
        is_last: Whether the fit ends after this turn.
    """

    module: AlignmentModule
    data: LabelDataModule
    is_last: bool


class FitHook:
    """Does nothing at any moment of a fit; subclasses override what they need.

    Hooks are independent of Lightning, so that a fit without an optimiser can run without it.
    """

    def on_turn_start(self, turn: Turn) -> None:
        """Run before the first block of a turn."""

    def on_block_end(self, turn: Turn, block: StepBlock, is_last_block: bool) -> None:
        """Run after each block of a turn."""

    def on_turn_end(self, turn: Turn) -> None:
        """Run after the last block of a turn."""

    def on_training_end(self, module: AlignmentModule, data: LabelDataModule) -> None:
        """Run after the last turn, while the module is still on its device."""
