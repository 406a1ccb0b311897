"""Semi-supervised training: the model's own mutual nearest pairs become labels."""

import logging
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch

from emea.data.arrays import IntArray
from emea.em.em_callback import Decoder
from emea.em.protocol import Visible
from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import LabelDataModule
from emea.matching.candidates import mutual_pairs

logger = logging.getLogger(__name__)


class SelfTraining(pl.Callback):
    """Between the turns of a fit, adds the mutual nearest pairs of unlabelled entities.

    A pair that was added stays, and its entities are labelled from then on. The similarity is
    taken among the entities that are left in the pool, so what CSLS calls a neighbourhood is
    the pool's. Without turns training is supervised.

    Args:
        visible: says which entities may be paired.
        decoder: embeddings to similarity.
        turns: turns after the first training.
        turns_per_iteration: turns after the fit of an EM iteration, where q* has left entities
            unlabelled.
        epochs_per_turn: epochs of each.
    """

    def __init__(
        self,
        visible: Visible,
        decoder: Decoder,
        turns: int,
        turns_per_iteration: int = 0,
        epochs_per_turn: int = 100,
    ) -> None:
        self.visible = visible
        self.decoder = decoder
        self.turns = turns
        self.turns_per_iteration = turns_per_iteration
        self.epochs_per_turn = epochs_per_turn

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Prepare the next turn, if there is one."""
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        assert isinstance(pl_module, AlignmentModule) and isinstance(data, LabelDataModule)
        assert trainer.max_epochs is not None
        if trainer.current_epoch + 1 < trainer.max_epochs:
            self.prepare_turn(pl_module, data)

    def prepare_turn(self, module: AlignmentModule, data: LabelDataModule) -> None:
        """Add what the model finds to the labels, and set the next turn's length."""
        labels = data.labels
        mined = self.mined(module, labels)
        data.add(mined)
        data.plan(self.epochs_per_turn, module.objective.steps_per_epoch(len(data.links)))
        logger.info("%d mutual nearest pairs join %d labels", len(mined), len(labels))

    def mined(self, module: AlignmentModule, labels: IntArray) -> IntArray:
        """``[num_pairs, 2]`` mutual nearest pairs among the pool's entities without a label."""
        source, target = module.embeddings()
        sources = _unlabelled(self.visible.mining_sources, labels[:, 0], len(source))
        targets = _unlabelled(self.visible.mining_targets, labels[:, 1], len(target))
        if not len(sources) or not len(targets):
            return np.zeros((0, 2), dtype=np.int64)
        rows, cols = (torch.from_numpy(ids).to(source.device) for ids in (sources, targets))
        similarity = self.decoder(source.index_select(0, rows), target.index_select(0, cols))
        first, second = mutual_pairs(similarity).cpu().numpy().T
        return np.stack([sources[first], targets[second]], axis=1)


def _unlabelled(pool: IntArray | None, labelled: IntArray, num_entities: int) -> IntArray:
    """Entities of the pool that have no label, in the order of their ids.

    Not in the order of the pool: where it comes from links, the position of an entity would
    tell which one it belongs to.
    """
    everyone = np.arange(num_entities) if pool is None else pool
    return np.setdiff1d(everyone, labelled)
