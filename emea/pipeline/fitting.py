"""One fit: a fresh Trainer, a fresh optimiser, the weights as they are."""

import logging
import signal
import threading
import warnings
from collections.abc import Sequence

import pytorch_lightning as pl

from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import LabelDataModule
from emea.training.turn_state import TurnState


def fit(
    module: AlignmentModule,
    data: LabelDataModule,
    num_epochs: int,
    accelerator: str,
    callbacks: Sequence[pl.Callback],
    num_turns: int = 0,
    resumed: TurnState | None = None,
) -> None:
    """Train for so many epochs on the data module's current links, then for further turns.

    What a further turn trains on, and for how long, is for a callback to say when the turn
    before ends. A second ``fit`` of one Lightning Trainer trains nothing, so each has its own.
    A resumed fit does what is left of the turn at hand, and the turns after it; one of the
    callbacks restores it.
    """
    if resumed is None:
        data.plan(num_epochs, module.objective.steps_per_epoch(len(data.links)))
    else:
        resumed.plan(data)
        num_turns -= resumed.turn
    trainer = pl.Trainer(
        accelerator=accelerator,
        devices=1,
        max_epochs=1 + num_turns,
        reload_dataloaders_every_n_epochs=1,
        callbacks=list(callbacks),
        logger=False,
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
