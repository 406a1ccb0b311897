"""Ranks by a ranking of some pairs, and by the neural order behind them."""

import numpy as np
import torch

from emea.data.arrays import FloatArray, IntArray
from emea.data.sorting import places_in_runs
from emea.evaluation.ranks import Ranks
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
        in_pool=_merged(link, better & inside, equal & inside, found, neural.in_pool),
        in_all=_merged(link, better, equal, found, neural.in_all),
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


def _merged(
    link: np.ndarray, before: np.ndarray, equal: np.ndarray, found: np.ndarray, neural: FloatArray
) -> FloatArray:
    num_before = np.bincount(link, before, minlength=len(neural))
    num_equal = np.bincount(link, equal, minlength=len(neural))
    ranked = 1 + num_before + np.maximum(num_equal - 1, 0) / 2
    # the neural rank has counted half of each pair beside it
    merged: FloatArray = np.where(found, ranked, neural + num_before + num_equal / 2)
    return merged
