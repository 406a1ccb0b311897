"""Early stopping on the validation links."""

from typing import Any

import pytorch_lightning as pl
from torch import Tensor

from emea.data.arrays import IntArray
from emea.evaluation.ranks import link_ranks, ranking_metrics
from emea.fit.alignment_module import AlignmentModule
from emea.fit.step_block import StepBlock
from emea.matching.similarity import Decoder

NOTHING = (-1.0, -1.0)
"""Hit@1 and MRR before the first evaluation, lower than any real value."""


class EarlyStopping(pl.Callback):
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

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Reset the state at the start of a turn."""
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
        """Evaluate the model if an evaluation is due."""
        assert isinstance(pl_module, AlignmentModule) and isinstance(batch, StepBlock)
        self.num_steps += batch.num_steps
        due = self.num_steps % (self.every * batch.steps_per_epoch) == 0
        due &= self.num_steps > self.start * batch.steps_per_epoch
        if due or trainer.is_last_batch:
            self._evaluate(pl_module)
        if self.num_idle >= self.patience:
            pl_module.turn_is_over = True

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Load the best weights in place, because a CUDA graph refers to their addresses."""
        if self.num_idle:
            pl_module.load_state_dict(self.best_weights)
        self.best_weights = {}

    def measured(self, module: AlignmentModule) -> tuple[float, float]:
        """Compute Hit@1 and MRR on the validation links."""
        similarity = self.decoder(*module.embeddings())
        metrics = ranking_metrics(link_ranks(similarity, self.validation).in_all)
        return metrics["hit@1"], metrics["mrr"]

    def _evaluate(self, module: AlignmentModule) -> None:
        found = self.measured(module)
        if found > self.best:
            self.best, self.num_idle = found, 0
            weights = module.state_dict().items()
            self.best_weights = {name: value.clone() for name, value in weights}
        else:
            self.num_idle += 1
