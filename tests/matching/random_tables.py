"""Tables of pairs with empty slots anywhere, and similarities with given scores."""

import numpy as np
import torch
from torch import Tensor

from emea.matching.pair_table import PairTable
from emea.matching.similarity import Similarity


def random_table(
    rng: np.random.Generator,
    num_source: int,
    num_target: int,
    width: int,
    fill: float = 0.7,
    dtype: torch.dtype = torch.float64,
) -> PairTable:
    """Distinct random targets in each row, in no order."""
    width = min(width, num_target)
    targets = np.array([rng.permutation(num_target)[:width] for _ in range(num_source)])
    filled = rng.random((num_source, width)) < fill
    # empty slots hold ids of true pairs, and of none
    targets = np.where(filled, targets, rng.integers(0, num_target, targets.shape))
    return PairTable(
        targets=torch.from_numpy(targets),
        scores=torch.from_numpy(rng.normal(size=targets.shape)).to(dtype),
        filled=torch.from_numpy(filled),
        num_target=num_target,
    )


def pairs_of(table: PairTable) -> dict[tuple[int, int], tuple[int, int]]:
    """Row and slot by (source, target)."""
    return {
        (row, int(table.targets[row, slot])): (row, slot)
        for row, slot in table.filled.nonzero().tolist()
    }


def from_scores(scores: Tensor | np.ndarray) -> Similarity:
    """A similarity with exactly these scores, from either side; arrays in single precision."""
    scores = scores if isinstance(scores, Tensor) else torch.from_numpy(scores).float()
    num_source, num_target = scores.shape
    zeros = scores.new_zeros(num_source), scores.new_zeros(num_target)
    return Similarity(scores, torch.eye(num_target).to(scores), *zeros)


def random_similarity(num_source: int, num_target: int, seed: int = 0) -> Similarity:
    """A similarity with random vectors and offsets, in double precision."""
    generator = torch.Generator().manual_seed(seed)
    sizes = (num_source, 3), (num_target, 3), (num_source,), (num_target,)
    parts = [
        torch.randn(size, dtype=torch.float64, generator=generator) for size in sizes
    ]
    return Similarity(*parts, scale=2.0)
