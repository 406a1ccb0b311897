"""Ranks by q* inside the candidates and by the neural order behind them."""

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.evaluation.ranks import Ranks
from emea.matching.beliefs import Beliefs


def joint_ranks(
    neural: Ranks, beliefs: Beliefs, links: IntArray, pool: IntArray | None = None
) -> Ranks:
    """Ranks of the links' targets when beliefs reorder the neural model's best candidates.

    Candidates are the neural model's best, so a target that is none of them keeps its neural
    rank. Equal beliefs are ordered as the neural model orders them.

    Args:
        neural: ranks of the same links by the neural model.
        beliefs: candidates in neural order with their new probabilities.
        links: ``[num_links, 2]``.
        pool: targets of the pool; ``None``: those of the links.
    """
    targets = beliefs.targets.cpu().numpy()[links[:, 0]]
    probs = beliefs.probs.cpu().numpy()[links[:, 0]]
    hits = targets == links[:, 1:]
    found, slot = hits.any(1), hits.argmax(1)
    own = probs[np.arange(len(links)), slot][:, None]
    position = np.arange(targets.shape[1])
    before = (probs > own) | ((probs == own) & (position < slot[:, None]))
    in_pool = np.isin(targets, links[:, 1] if pool is None else pool)
    return Ranks(
        in_pool=_merged(found, (before & in_pool).sum(1), neural.in_pool),
        in_all=_merged(found, before.sum(1), neural.in_all),
    )


def _merged(found: np.ndarray, num_before: np.ndarray, neural: FloatArray) -> FloatArray:
    return np.where(found, 1.0 + num_before, neural)
