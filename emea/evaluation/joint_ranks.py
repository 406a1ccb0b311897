"""Ranks of test links by q* or by the fused ranking of em=dual."""

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
    """Rank the links' targets with the ranked pairs of a source entity before all other targets.

    Equal scores share the mean of their ranks. A target outside the ranked pairs comes after them,
    in the neural order: ranked pairs that the encoder puts after it, or level with it, move
    before it.

    Args:
        neural: Ranks of the same links by the encoder.
        similarity: Similarity of the encoder.
        ranking: The ranked pairs, source to target.
        links: ``[num_links, 2]``; with ``reverse`` (target, source).
        pool: Entities of the pool; ``None`` means the links' second column.
        reverse: Rank sources for targets; neural ranks and similarity must be reversed as well.
    """
    rows, columns, scores = _listed(ranking, reverse)
    link, entry = _entries(rows, links[:, 0])
    # Both come from the same function, so that ties are exact.
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
    """Return the row, column and score of each pair, sorted by row."""
    table = ranking.table
    rows, slots = table.filled.nonzero(as_tuple=True)
    columns, scores = table.targets[rows, slots], ranking.scores[rows, slots].double()
    if reverse:
        rows, columns = columns, rows
    order = torch.argsort(rows, stable=True)
    listed = [column[order].cpu().numpy() for column in (rows, columns, scores)]
    return listed[0], listed[1], listed[2]


def pair_scores(similarity: Similarity, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return ``[num_pairs]`` score of each pair of source and target entity."""
    device = similarity.source.device
    pairs = (torch.from_numpy(ids.copy()).to(device) for ids in (rows, columns))
    scores: np.ndarray = similarity.of_pairs(*pairs).cpu().numpy()
    return scores


def _entries(rows: np.ndarray, wanted: IntArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of the wanted row and of the pair, for every pair of the wanted rows."""
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
    # The neural rank already contains half of each tied pair.
    merged: FloatArray = np.where(found, ranked, neural + num_before + num_equal / 2)
    return merged


def joint_ranks(
    neural: Ranks,
    similarity: Similarity,
    beliefs: Beliefs,
    links: IntArray,
    pool: IntArray | None = None,
) -> Ranks:
    """Rank the links' targets when beliefs reorder the encoder's best candidates.

    A target that is not a candidate comes after all candidates. After an exact search it keeps its
    neural rank, because the candidates are the encoder's best. After an approximate search,
    candidates that the encoder ranks after it, or level with it, move before it. Equal beliefs keep
    the neural order.

    Args:
        neural: Ranks of the same links by the encoder.
        similarity: Similarity of the encoder.
        beliefs: Candidates in neural order with their new probabilities.
        links: ``[num_links, 2]``.
        pool: Targets of the pool; ``None`` means those of the links.
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
    if similarity.scope is not None:
        passing[~found] = _passing(similarity, targets[~found], links[~found])
    return Ranks(
        in_pool=_merged(found, before & in_pool, passing * in_pool, neural.in_pool),
        in_all=_merged(found, before, passing, neural.in_all),
    )


def candidate_ranks(beliefs: Beliefs, links: IntArray) -> Ranks:
    """Rank the links' targets by probability, using only the beliefs.

    A target that is not a candidate, or has probability 0, gets rank infinity and counts as missed.
    Equal probabilities keep the neural order.

    Args:
        beliefs: Candidates in neural order with their probabilities.
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
    """Return how much each candidate adds to the neural rank of a target that is not a candidate.

    A candidate that the encoder ranks after the target adds 1. A tied candidate adds 1/2, because
    the neural rank already contains the other half.
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
