"""Ranks of the right targets."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.matching.similarity import Similarity

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranks:
    """Realistic ranks of each link's target: the mean over all orders of tied scores.

    Args:
        in_pool: rank among the targets of the given links (the field's convention).
        in_all: rank among all targets.
    """

    in_pool: FloatArray
    in_all: FloatArray


def link_ranks(similarity: Similarity, links: IntArray, pool: IntArray | None = None) -> Ranks:
    """Rank each link's target for its source, among a pool of targets and among all.

    Args:
        similarity: scores all pairs.
        links: ``[num_links, 2]``.
        pool: targets of the pool, the links' among them; ``None``: just those.
    """
    device = similarity.source.device
    sources, targets = torch.from_numpy(links.T.copy()).to(device)
    pooled = targets if pool is None else torch.from_numpy(pool.copy()).to(device)
    in_pool, in_all = [], []
    position = 0
    for rows, scores in similarity.blocks(sources):
        right = targets[position : position + len(rows)].unsqueeze(1)
        position += len(rows)
        # the right target's score is read from the same block, so ties are exact
        reference = scores.gather(1, right)
        in_all.append(realistic_ranks(scores, reference))
        in_pool.append(realistic_ranks(scores.index_select(1, pooled), reference))
    return Ranks(in_pool=_to_numpy(in_pool), in_all=_to_numpy(in_all))


def realistic_ranks(scores: Tensor, reference: Tensor) -> Tensor:
    """Mean of the best and the worst rank that ties allow; the reference is one of the scores.

    What is not a number counts as better than the reference: it never flatters a model.
    """
    not_better = (scores <= reference).sum(1)
    better = scores.shape[1] - not_better
    tied = ((scores == reference).sum(1) - 1).clamp(min=0)
    return 1 + better + tied / 2


def _to_numpy(parts: list[Tensor]) -> FloatArray:
    if not parts:
        return np.zeros(0)
    return torch.cat(parts).double().cpu().numpy()
