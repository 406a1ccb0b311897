"""Ranks by q* inside the candidates and by the neural order behind them."""

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.evaluation.fused_ranks import pair_scores
from emea.evaluation.ranks import Ranks
from emea.matching.beliefs import Beliefs
from emea.matching.similarity import Similarity


def joint_ranks(
    neural: Ranks,
    similarity: Similarity,
    beliefs: Beliefs,
    links: IntArray,
    pool: IntArray | None = None,
) -> Ranks:
    """Ranks of the links' targets when beliefs reorder the neural model's best candidates.

    A target that is no candidate stands behind all that are: where the search was exact they are
    the neural model's best, and it keeps its neural rank; candidates of an approximate search may
    be behind it or beside it, and move before it. Equal beliefs are ordered as the neural model
    orders them.

    Args:
        neural: ranks of the same links by the neural model.
        similarity: the neural model's.
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
    passing = np.zeros(targets.shape)
    if similarity.cells is not None:
        passing[~found] = _passing(similarity, targets[~found], links[~found])
    return Ranks(
        in_pool=_merged(found, before & in_pool, passing * in_pool, neural.in_pool),
        in_all=_merged(found, before, passing, neural.in_all),
    )


def candidate_ranks(beliefs: Beliefs, links: IntArray) -> Ranks:
    """Ranks of the links' targets by probability, where nothing but the beliefs is known.

    A target that is not a candidate, or has probability 0, has rank infinity: it counts as missed.
    Equal probabilities are ordered as the neural model orders them.

    Args:
        beliefs: candidates in neural order with their probabilities.
        links: ``[num_links, 2]``; their targets are the pool.
    """
    targets = beliefs.targets.cpu().numpy()[links[:, 0]]
    probs = beliefs.probs.cpu().numpy()[links[:, 0]]
    hits = (targets == links[:, 1:]) & (probs > 0)
    found, slot = hits.any(1), hits.argmax(1)
    own = probs[np.arange(len(links)), slot][:, None]
    position = np.arange(targets.shape[1])
    before = (probs > own) | ((probs == own) & (position < slot[:, None]))
    in_pool, in_all = (
        np.where(found, 1.0 + counted.sum(1), np.inf)
        for counted in (before & np.isin(targets, links[:, 1]), before)
    )
    return Ranks(in_pool=in_pool, in_all=in_all)


def _passing(similarity: Similarity, targets: IntArray, links: IntArray) -> FloatArray:
    """What each candidate adds to the rank of a target that is none: it has not counted yet.

    A candidate behind the target counts by one, one beside it by the half that the neural rank
    has not counted.
    """
    rows = np.repeat(links[:, 0], targets.shape[1])
    own = pair_scores(similarity, links[:, 0], links[:, 1])[:, None]
    scores = pair_scores(similarity, rows, targets.flatten()).reshape(targets.shape)
    added: FloatArray = (scores < own) + (scores == own) / 2
    return added


def _merged(
    found: np.ndarray, before: np.ndarray, passing: FloatArray, neural: FloatArray
) -> FloatArray:
    merged: FloatArray = np.where(found, 1.0 + before.sum(1), neural + passing.sum(1))
    return merged
