"""One fit: a fresh Trainer, a fresh optimiser, the weights as they are."""

import logging
import warnings
from collections.abc import Sequence

import pytorch_lightning as pl

from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import LabelDataModule


def fit(
    module: AlignmentModule,
    data: LabelDataModule,
    num_steps: int,
    accelerator: str,
    callbacks: Sequence[pl.Callback],
) -> None:
    """Train for so many optimisation steps on the data module's current links.

    A second ``fit`` of one Lightning Trainer trains nothing, so each fit has its own.
    """
    data.num_steps = num_steps
    trainer = pl.Trainer(
        accelerator=accelerator,
        devices=1,
        max_epochs=1,
        callbacks=list(callbacks),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    try:
        trainer.fit(module, datamodule=data)
    except SystemExit:
        # Lightning answers Ctrl-C with an exit of its own, which would read as a failure
        if trainer.interrupted:
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
