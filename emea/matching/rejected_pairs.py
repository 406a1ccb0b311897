"""Pairs that a person rejected: found among candidates, and removed from them."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray, are_among
from emea.matching.beliefs import Beliefs

MOST_TARGETS = 2**31
"""Bound of the target ids, for one number per pair."""


class RejectedPairs:
    """A set of pairs that must be in no answer and must give no evidence.

    Args:
        pairs: ``[num_pairs, 2]`` source and target entities; ``None`` means no pairs.
    """

    def __init__(self, pairs: IntArray | None) -> None:
        self.pairs: IntArray = (
            np.zeros((0, 2), dtype=np.int64) if pairs is None else pairs
        )
        self._keys = torch.from_numpy(
            self.pairs[:, 0] * MOST_TARGETS + self.pairs[:, 1]
        )

    def __len__(self) -> int:
        return len(self.pairs)

    def __call__(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return which of these pairs are rejected."""
        # the keys move once to the device of the pairs, not in every call
        if self._keys.device != targets.device:
            self._keys = self._keys.to(targets.device)
        return torch.isin(sources * MOST_TARGETS + targets, self._keys)

    def among(self, links: IntArray) -> np.ndarray:
        """Return which links are rejected, ``[num_links]``."""
        return are_among(links, self.pairs)

    def left_out_of(self, links: IntArray) -> IntArray:
        """Return the links that are not rejected; without rejected pairs, the same array."""
        if not len(self) or not len(links):
            return links
        kept: IntArray = links[~self.among(links)]
        return kept

    def removed_from(self, beliefs: Beliefs) -> Beliefs:
        """Return the beliefs, with probability 0 for rejected pairs.

        The other candidates do not gain that probability, because an entity may have no
        counterpart.
        """
        if not len(self):
            return beliefs
        sources = torch.arange(
            beliefs.num_source, device=beliefs.targets.device
        ).unsqueeze(1)
        return replace(
            beliefs, probs=beliefs.probs.masked_fill(self(sources, beliefs.targets), 0)
        )
