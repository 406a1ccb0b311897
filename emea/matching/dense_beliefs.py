"""Beliefs about the counterpart of each source entity over all targets, computed in blocks."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching.similarity import Similarity


@dataclass(frozen=True, eq=False)
class DenseBeliefs:
    """Computes q(y_e) over all targets (Eq. 2), a block of source entities at a time.

    The whole table has one entry per pair of entities and is never stored. Targets that an
    approximate search does not compare have their probability, too.

    Args:
        similarity: Scores all pairs.
        sharpness: Sharpness of the softmax.
        certain: ``[num_links, 2]`` links that have probability 1.
    """

    similarity: Similarity
    sharpness: float
    certain: Tensor

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield all source entities in order as ranges, with ``[n, num_target]`` probabilities."""
        labels = self.certain.new_full((self.similarity.num_source,), -1)
        labels[self.certain[:, 0]] = self.certain[:, 1]
        start = 0
        for rows, scores in self.similarity.blocks():
            probs = torch.softmax(scores.mul_(self.sharpness), dim=1)
            block = slice(start, start + len(rows))
            known = (labels[block] >= 0).nonzero().squeeze(1)
            probs[known] = 0
            probs[known, labels[block][known]] = 1
            yield block, probs
            start = block.stop
