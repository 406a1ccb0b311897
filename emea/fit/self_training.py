"""Semi-supervised training on the encoder's own mutual nearest pairs."""

import logging

import numpy as np
import torch

from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.fit.alignment_module import AlignmentModule
from emea.fit.fit_hook import FitHook, Turn
from emea.fit.settings import EPOCHS_PER_TURN, SemiSettings
from emea.matching.candidates import mutual_pairs
from emea.matching.rejected_pairs import RejectedPairs
from emea.matching.similarity import Decoder

logger = logging.getLogger(__name__)


class SelfTraining(FitHook):
    """Adds mutual nearest pairs of unlabelled entities to the labels between the turns of a fit.

    An added pair is kept, and its entities count as labelled from then on. The similarity is
    computed among the remaining unlabelled entities, so CSLS uses neighbourhoods within them.
    With ``turns=0`` training is supervised.

    Args:
        visible: Which entities may be paired under the protocol.
        decoder: Maps embeddings to a similarity.
        turns: Number of turns after the first training.
        epochs_per_turn: Number of epochs per turn.
    """

    def __init__(
        self,
        visible: Visible,
        decoder: Decoder,
        turns: int = SemiSettings.turns,
        epochs_per_turn: int = EPOCHS_PER_TURN,
    ) -> None:
        self.visible = visible
        self.decoder = decoder
        self.turns = turns
        self.epochs_per_turn = epochs_per_turn

    def on_turn_end(self, turn: Turn) -> None:
        """Add mined pairs to the labels and set the length of the next turn, if any."""
        if turn.is_last:
            return
        module = turn.module
        data = turn.data
        labels = data.labels
        mined = self.mined(module, labels)
        data.add(mined)
        data.plan(self.epochs_per_turn, module.steps_per_epoch(len(data.links)))
        logger.info(
            "Self-training: added %d pairs to %d labels", len(mined), len(labels)
        )

    def mined(self, module: AlignmentModule, labels: IntArray) -> IntArray:
        """Return ``[num_pairs, 2]`` mutual nearest pairs among the unlabelled entities."""
        source, target = module.embeddings()
        labels = np.concatenate([labels, self.visible.train])  # some may be held out
        sources = _unlabelled(self.visible.mining_sources, labels[:, 0], len(source))
        targets = _unlabelled(self.visible.mining_targets, labels[:, 1], len(target))
        if not len(sources) or not len(targets):
            return np.zeros((0, 2), dtype=np.int64)
        rows, cols = (
            torch.from_numpy(ids).to(source.device) for ids in (sources, targets)
        )
        similarity = self.decoder(
            source.index_select(0, rows), target.index_select(0, cols)
        )
        first, second = mutual_pairs(similarity).cpu().numpy().T
        found = np.stack([sources[first], targets[second]], axis=1)
        return RejectedPairs(self.visible.rejected).left_out_of(found)


def _unlabelled(
    pool: IntArray | None, labelled: IntArray, num_entities: int
) -> IntArray:
    """Return the unlabelled entities of the pool, sorted by id.

    The order of the pool must not be kept, because in a pool that comes from links the position of
    an entity would reveal its counterpart.
    """
    everyone = np.arange(num_entities) if pool is None else pool
    return np.setdiff1d(everyone, labelled)
