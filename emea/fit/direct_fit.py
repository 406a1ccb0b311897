"""A fit without Lightning, for encoders that have nothing to optimise."""

from collections.abc import Sequence

import torch

from emea.fit.alignment_module import AlignmentModule
from emea.fit.fit_hook import FitHook, Turn
from emea.fit.step_block import LabelDataModule


def fit_directly(
    module: AlignmentModule,
    data: LabelDataModule,
    device: torch.device,
    num_turns: int,
    hooks: Sequence[FitHook],
) -> None:
    """Run the blocks of all turns of a fit whose active members have no optimiser.

    It calls module and hooks in the same order as `emea.fit.lightning_trainer.fit_with_lightning`.

    Args:
        module: The module, whose active members have no parameters to train.
        data: The labels.
        device: The device to compute on.
        num_turns: Number of turns of the fit.
        hooks: Run at the moments of the fit, in this order.
    """
    module.to(device)
    for number in range(num_turns):
        turn = Turn(module, data, is_last=number + 1 == num_turns)
        # Each iteration over the blocks draws a random number. Lightning starts one before each
        # turn, and another one in each turn after the first. Results must not depend on who runs
        # the loop, so this loop draws the same numbers.
        blocks = list(data.blocks())
        for hook in hooks:
            hook.on_turn_start(turn)
        module.start_turn()
        if number:
            blocks = list(data.blocks())
        for index, block in enumerate(blocks):
            if module.turn_is_over:
                break
            on_device = block.to(device)
            module.run_block(on_device, optimizers=[])
            for hook in hooks:
                hook.on_block_end(
                    turn, on_device, is_last_block=index + 1 == len(blocks)
                )
        for hook in hooks:
            hook.on_turn_end(turn)
    for hook in hooks:
        hook.on_training_end(module, data)
    module.end_fit()
