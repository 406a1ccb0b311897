"""Adjacency with self-loops, normalised by both ends' degrees."""

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.encoders.sparse_pattern import SparsePattern


class NormalisedAdjacency(SparsePattern):
    """Positions and values of ``D^-1/2 (A + I) D^-1/2``.

    Args:
        pairs: ``[num_pairs, 2]`` neighbours, in either order and as often as they like.
        size: entities.
    """

    weights: Tensor

    def __init__(self, pairs: IntArray, size: int) -> None:
        loops = np.repeat(np.arange(size)[:, None], 2, axis=1)
        both = np.concatenate([pairs, pairs[:, ::-1], loops])
        keys = np.unique(both[:, 0] * size + both[:, 1])
        rows, cols = keys // size, keys % size
        super().__init__(rows, cols, (size, size))
        scale = np.bincount(rows, minlength=size) ** -0.5
        weights = torch.from_numpy(scale[rows] * scale[cols])
        self.register_buffer("weights", weights, persistent=False)
