"""Ranks of test links and the ranking metrics."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import FloatArray, IntArray, are_among
from emea.evaluation.metric_table import BY_NAME, RANKING_METRICS
from emea.kernels.rank_counts import rank_counts
from emea.matching.similarity import Similarity
from emea.runtime.block_memory import in_smaller_blocks

MAX_RANKED = 100_000
"""Test links up to which all are ranked. Hit@k on a sample of this size has a standard error of at
most 0.0016."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """Realistic ranks of each link's target: the mean over all orders of tied scores.

    Args:
        in_pool: Rank among the targets of the given links, as is usual in the field.
        in_all: Rank among all targets.
    """

    in_pool: FloatArray
    in_all: FloatArray


def ranked_links(test: IntArray) -> IntArray:
    """Return the test links that are ranked, ``[n, 2]``: all, or a fixed random sample of many."""
    chosen = np.random.default_rng(0).permutation(len(test))[:MAX_RANKED]
    return test[np.sort(chosen)]


@in_smaller_blocks
def link_ranks(
    similarity: Similarity, links: IntArray, pool: IntArray | None = None
) -> Ranks:
    """Rank each link's target for its source, among a pool of targets and among all.

    Args:
        similarity: Scores all pairs.
        links: ``[num_links, 2]``.
        pool: Targets of the pool, including those of the links; ``None`` means only those.
    """
    device = similarity.source.device
    sources, targets = torch.from_numpy(links.T.copy()).to(device)
    pooled = targets if pool is None else torch.from_numpy(pool.copy()).to(device)
    # The columns of the pool come first, so that they can be sliced without a copy.
    similarity, place = _pool_first(similarity, pooled)
    right = place[targets]
    num_pooled = len(pooled.unique())
    # Results are written into preallocated memory, which avoids heap fragmentation.
    ranks = torch.empty(2, len(sources), dtype=torch.float64, device=device)
    position = 0
    for rows, scores in similarity.blocks(sources):
        part = slice(position, position + len(rows))
        position += len(rows)
        # The score of the true target is read from the same block, so that ties are exact.
        reference = scores.gather(1, right[part].unsqueeze(1))
        for index, num_columns in enumerate((num_pooled, None)):
            better, equal = rank_counts(scores, reference, num_columns)
            # The mean of best and worst rank under ties; ``equal`` includes the reference.
            ranks[index, part] = 1 + better + (equal - 1).clamp(min=0) / 2
    in_pool, in_all = ranks.cpu().numpy()
    return Ranks(in_pool=in_pool, in_all=in_all)


def _pool_first(similarity: Similarity, pool: Tensor) -> tuple[Similarity, Tensor]:
    """Return the similarity with the pool's targets first, and the new index of each target."""
    outside = torch.ones(similarity.num_target, dtype=torch.bool, device=pool.device)
    outside[pool] = False
    order = torch.argsort(outside.int(), stable=True)
    moved = replace(
        similarity,
        target=similarity.target.index_select(0, order),
        target_offset=similarity.target_offset.index_select(0, order),
        scope=None,
    )
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    return moved, place


def ranking_metrics(ranks: FloatArray) -> dict[str, float]:
    """Compute Hit@k, mean reciprocal rank and mean rank (`metric_table`); NaN without ranks.

    Examples:
        >>> metrics = ranking_metrics(np.array([1.0, 2.0, 4.0]))
        >>> round(metrics["hit@1"], 3), round(metrics["mrr"], 3), round(metrics["mr"], 3)
        (0.333, 0.583, 2.333)
    """
    if not len(ranks):
        return {metric.name: float("nan") for metric in RANKING_METRICS}
    return {
        metric.name: float(np.mean(metric.of_links(ranks)))
        for metric in RANKING_METRICS
    }


@dataclass(frozen=True)
class Missed:
    """Test links that no method can find, because an entity is not in its graph.

    Args:
        share: Their share of all test links.
        pool_size: Number of candidates in the pool, the worst rank there.
        num_all: Number of all candidates, the worst rank among all.
    """

    share: float = 0.0
    pool_size: int = 1
    num_all: int = 1


NONE_MISSED = Missed()


def both_pools(ranks: Ranks, missed: Missed = NONE_MISSED) -> dict[str, Any]:
    """Compute the metrics among the test targets and, as ``all_targets``, among all targets.

    Args:
        ranks: Ranks of the test links that can be found, or of a sample of them.
        missed: The other test links, which get the worst rank.
    """
    return {
        **_with_missed(ranks.in_pool, missed.share, missed.pool_size),
        "all_targets": _with_missed(ranks.in_all, missed.share, missed.num_all),
    }


def _with_missed(ranks: FloatArray, share: float, worst: int) -> dict[str, float]:
    """Return the metrics if a share of all links has the worst rank and no hit."""
    metrics = ranking_metrics(ranks)
    if not share:
        return metrics
    return {
        name: (1 - share) * value + share * BY_NAME[name].missed(worst)
        for name, value in metrics.items()
    }


def filtered(ranks: Ranks, links: IntArray) -> Ranks:
    """Return the ranks of each link's target without the other targets of its source.

    If an entity has several correct targets, only one of them can be first. Each target is
    therefore ranked among the wrong ones, as in link prediction (Bordes et al., 2013).

    Args:
        ranks: Ranks of the links.
        links: ``[num_links, 2]``; without sources that occur twice, no rank changes.
    """
    _, group, sizes = np.unique(links[:, 0], return_inverse=True, return_counts=True)
    if not len(links) or sizes.max() == 1:
        return ranks
    order = np.argsort(group, kind="stable")
    found = [values.copy() for values in (ranks.in_pool, ranks.in_all)]
    for rows in np.split(order, np.cumsum(sizes)[:-1]):
        for values, new in zip((ranks.in_pool, ranks.in_all), found, strict=True):
            own = values[rows]
            before = (own[:, None] > own).sum(1) + (
                (own[:, None] == own).sum(1) - 1
            ) / 2
            new[rows] = own - before
    return Ranks(*found)


def matched_ranks(pairs: IntArray, links: IntArray) -> Ranks:
    """Assign rank 1 to a link that is in the matching, and infinity to any other link.

    The matching was chosen among all targets, so both pools have the same ranks.

    Args:
        pairs: ``[num_pairs, 2]`` matched source and target entities.
        links: ``[num_links, 2]``.
    """
    ranks = np.where(are_among(links, pairs), 1.0, np.inf)
    return Ranks(in_pool=ranks, in_all=ranks)


def matched_metrics(ranks: Ranks, missed_share: float = 0.0) -> dict[str, Any]:
    """Compute Hit@1, which equals recall; metrics that need a ranking are ``None``.

    Args:
        ranks: Ranks of the test links that can be found.
        missed_share: Share of all test links that no method can find.
    """
    absent = dict.fromkeys(ranking_metrics(ranks.in_pool))
    found = ranking_metrics(ranks.in_pool)["hit@1"] * (1 - missed_share)
    return {**absent, "hit@1": found, "all_targets": {**absent, "hit@1": found}}
