"""Ranks by q* or by the fused ranking."""

import numpy as np
import torch

from emea.data.arrays import FloatArray, IntArray
from emea.data.sorting import places_in_runs
from emea.evaluation.ranks import Ranks
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking
from emea.matching.similarity import Similarity


def fused_ranks(
    neural: Ranks,
    similarity: Similarity,
    ranking: PairRanking,
    links: IntArray,
    pool: IntArray | None = None,
    reverse: bool = False,
) -> Ranks:
    """Ranks of the links' targets when the ranked pairs of their source come before all others.

    Equal scores share the mean of their ranks. A target that is not ranked with its source
    stands behind the source's ranked pairs, in the neural order of all others: pairs that the
    neural model puts behind it, or beside it, move before it.

    Args:
        neural: ranks of the same links by the neural model.
        similarity: the neural model's.
        ranking: the ranked pairs, source to target.
        links: ``[num_links, 2]``; with ``reverse`` (target, source).
        pool: entities of the pool; ``None``: those of the links' second column.
        reverse: rank sources for targets, neural ranks and similarity being reversed, too.
    """
    rows, columns, scores = _listed(ranking, reverse)
    link, entry = _entries(rows, links[:, 0])
    # both from the same function, so that ties are exact
    reference = pair_scores(similarity, links[:, 0], links[:, 1])[link]
    nearness = pair_scores(similarity, rows[entry], columns[entry])
    hits = columns[entry] == links[link, 1]
    found = np.zeros(len(links), dtype=bool)
    found[link[hits]] = True
    own = np.full(len(links), np.inf)
    own[link[hits]] = scores[entry[hits]]
    better = np.where(found[link], scores[entry] > own[link], nearness < reference)
    equal = np.where(found[link], scores[entry] == own[link], nearness == reference)
    inside = np.isin(columns, links[:, 1] if pool is None else pool)[entry]
    return Ranks(
        in_pool=_fused(link, better & inside, equal & inside, found, neural.in_pool),
        in_all=_fused(link, better, equal, found, neural.in_all),
    )


def _listed(ranking: PairRanking, reverse: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and score of each pair, by row."""
    table = ranking.table
    rows, slots = table.filled.nonzero(as_tuple=True)
    columns, scores = table.targets[rows, slots], ranking.scores[rows, slots].double()
    if reverse:
        rows, columns = columns, rows
    order = torch.argsort(rows, stable=True)
    listed = [column[order].cpu().numpy() for column in (rows, columns, scores)]
    return listed[0], listed[1], listed[2]


def pair_scores(similarity: Similarity, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """``[num_pairs]`` score of each source entity with the target entity beside it."""
    device = similarity.source.device
    pairs = (torch.from_numpy(ids.copy()).to(device) for ids in (rows, columns))
    scores: np.ndarray = similarity.of_pairs(*pairs).cpu().numpy()
    return scores


def _entries(rows: np.ndarray, wanted: IntArray) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of the wanted rows: number of the wanted row, and of the pair."""
    first = np.searchsorted(rows, wanted, side="left")
    sizes = np.searchsorted(rows, wanted, side="right") - first
    link = np.repeat(np.arange(len(wanted)), sizes)
    return link, first[link] + places_in_runs(sizes)


def _fused(
    link: np.ndarray, before: np.ndarray, equal: np.ndarray, found: np.ndarray, neural: FloatArray
) -> FloatArray:
    num_before = np.bincount(link, before, minlength=len(neural))
    num_equal = np.bincount(link, equal, minlength=len(neural))
    ranked = 1 + num_before + np.maximum(num_equal - 1, 0) / 2
    # the neural rank has counted half of each pair beside it
    merged: FloatArray = np.where(found, ranked, neural + num_before + num_equal / 2)
    return merged


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
