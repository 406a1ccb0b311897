"""A turn that ends when the validation links say so."""

from typing import Any

import pytorch_lightning as pl
from torch import Tensor

from emea.data.arrays import IntArray
from emea.em.em_callback import Decoder
from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import StepBlock
from emea.evaluation.ranks import link_ranks, ranking_metrics

NOTHING = (-1.0, -1.0)
"""Worse than any Hit@1 and MRR."""


class EarlyStopping(pl.Callback):
    """Ends a turn once Hit@1 on the validation links stops rising, and keeps the best weights.

    Hit@1 is among all targets; MRR decides between equals, since a few links make many of
    them, above all at the start. The last weights of a turn are looked at, too. Every turn and
    every fit begins anew: their labels differ, so their numbers say nothing of each other.

    Args:
        validation: held-out links.
        decoder: embeddings to similarity.
        every: epochs between two looks.
        patience: looks in a row without a new best after which the turn ends.
        start: epochs before the first look, for models that need long to rank anything first.
    """

    def __init__(
        self,
        validation: IntArray,
        decoder: Decoder,
        every: int = 10,
        patience: int = 2,
        start: int = 0,
    ) -> None:
        if not len(validation):
            raise ValueError("early stopping needs validation links to look at")
        self.validation = validation
        self.decoder = decoder
        self.every = every
        self.patience = patience
        self.start = start
        self.num_steps = 0
        self.num_idle = 0
        self.best = NOTHING
        self.best_weights: dict[str, Tensor] = {}

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """A turn begins."""
        self.num_steps = 0
        self.num_idle = 0
        self.best = NOTHING

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Look at the model where it is due."""
        assert isinstance(pl_module, AlignmentModule) and isinstance(batch, StepBlock)
        self.num_steps += batch.num_steps
        due = self.num_steps % (self.every * batch.steps_per_epoch) == 0
        due &= self.num_steps > self.start * batch.steps_per_epoch
        if due or trainer.is_last_batch:
            self._look(pl_module)
        if self.num_idle >= self.patience:
            pl_module.end_turn()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Go on with the best weights, in place: a captured step holds their addresses."""
        if self.num_idle:
            pl_module.load_state_dict(self.best_weights)
        self.best_weights = {}

    def state_dict(self) -> dict[str, Any]:
        """How the turn goes so far."""
        return {
            "num_steps": self.num_steps,
            "num_idle": self.num_idle,
            "best": self.best,
            "best_weights": dict(self.best_weights),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with a turn."""
        self.num_steps, self.num_idle = state_dict["num_steps"], state_dict["num_idle"]
        hit, mrr = state_dict["best"]
        self.best = (hit, mrr)
        self.best_weights = dict(state_dict["best_weights"])

    def measured(self, module: AlignmentModule) -> tuple[float, float]:
        """Hit@1 and MRR of the validation links."""
        similarity = self.decoder(*module.embeddings())
        metrics = ranking_metrics(link_ranks(similarity, self.validation).in_all)
        return metrics["hit@1"], metrics["mrr"]

    def _look(self, module: AlignmentModule) -> None:
        found = self.measured(module)
        if found > self.best:
            self.best, self.num_idle = found, 0
            weights = module.state_dict().items()
            self.best_weights = {name: value.clone() for name, value in weights}
        else:
            self.num_idle += 1
