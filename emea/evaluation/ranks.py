"""Ranks of test links and the ranking metrics."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import FloatArray, IntArray
from emea.matching.compiled import arrays, loops
from emea.matching.similarity import Similarity
from emea.runtime import kernels
from emea.runtime.block_memory import in_smaller_blocks
from emea.runtime.threads import available_threads, in_threads, index_ranges

OPERATIONS_PER_SCORE = 4
"""Approximate operations of torch for each score that is compared."""


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


def ranked_links(test: IntArray, most: int | None = None) -> IntArray:
    """Return the test links that are ranked: all of them, or a fixed random sample.

    Args:
        test: ``[num_links, 2]`` test links.
        most: Size of the sample if it is less than ``MAX_RANKED``.
    """
    chosen = np.random.default_rng(0).permutation(len(test))[: min(most or MAX_RANKED, MAX_RANKED)]
    return test[np.sort(chosen)]


@in_smaller_blocks
def link_ranks(similarity: Similarity, links: IntArray, pool: IntArray | None = None) -> Ranks:
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
    num_pooled = len(pooled.unique())
    counts = all_counts(similarity, sources, place[targets], num_pooled)
    ranks = realistic_ranks(*counts).double().cpu().numpy()
    return Ranks(in_pool=ranks[0], in_all=ranks[1])


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


def all_counts(
    similarity: Similarity, sources: Tensor, right: Tensor, num_pooled: int
) -> tuple[Tensor, Tensor]:
    """Count the targets with a better score than the right one, and those with an equal score.

    Args:
        similarity: Scores all pairs.
        sources: ``[num_links]`` source ids.
        right: ``[num_links]`` target ids.
        num_pooled: Number of targets of the pool, which come first.

    Returns:
        Two ``[2, num_links]`` counts, in the pool and among all targets.
    """
    # Results are written into preallocated memory, which avoids heap fragmentation.
    counts = torch.empty(2, 2, len(sources), dtype=torch.int64, device=sources.device)
    position = 0
    for rows, scores in similarity.blocks(sources):
        part = slice(position, position + len(rows))
        position += len(rows)
        # The score of the true target is read from the same block, so that ties are exact.
        reference = scores.gather(1, right[part].unsqueeze(1))
        for place, num_columns in enumerate((num_pooled, None)):
            found = rank_counts(scores, reference, num_columns)
            counts[0, place, part], counts[1, place, part] = found
    return counts[0], counts[1]


def rank_counts(
    scores: Tensor, reference: Tensor, num_columns: int | None = None
) -> tuple[Tensor, Tensor]:
    """Count the scores of each row that are better than the reference and that equal it.

    NaN counts as better, so that it never improves a metric.

    Args:
        scores: ``[n, m]``.
        reference: ``[n, 1]``.
        num_columns: Number of columns that count, from the first on; ``None`` means all.
    """
    num_columns = scores.shape[1] if num_columns is None else num_columns
    if kernels.uses_numba(scores, OPERATIONS_PER_SCORE * scores.numel()):
        counts = torch.empty(2, len(scores), dtype=torch.int64)
        given = (*arrays(scores, reference, counts), num_columns)
        parts = index_ranges(len(scores), available_threads())
        in_threads(loops().rank_counts, [(*part, *given) for part in parts])
        not_better, equal = counts
    else:
        scores = scores[:, :num_columns]
        not_better, equal = (scores <= reference).sum(1), (scores == reference).sum(1)
    return num_columns - not_better, equal


def realistic_ranks(num_better: Tensor, num_equal: Tensor) -> Tensor:
    """Return the mean of best and worst rank under ties; ``num_equal`` includes the reference."""
    return 1 + num_better + (num_equal - 1).clamp(min=0) / 2


HIT_CUTS = (1, 5, 10)


def ranking_metrics(ranks: FloatArray) -> dict[str, float]:
    """Compute Hit@1/5/10, mean reciprocal rank and mean rank; NaN without ranks."""
    if not len(ranks):
        return dict.fromkeys([*(f"hit@{cut}" for cut in HIT_CUTS), "mrr", "mr"], float("nan"))
    metrics = {f"hit@{cut}": float(np.mean(ranks <= cut)) for cut in HIT_CUTS}
    metrics["mrr"] = float(np.mean(1 / ranks))
    metrics["mr"] = float(np.mean(ranks))
    return metrics


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
    lost = dict.fromkeys(metrics, 0.0) | {"mrr": 1 / worst, "mr": float(worst)}
    return {name: (1 - share) * value + share * lost[name] for name, value in metrics.items()}


def matched_ranks(targets: IntArray, links: IntArray) -> Ranks:
    """Assign rank 1 to a link that is in the matching, and infinity to any other link.

    The matching was chosen among all targets, so both pools have the same ranks.

    Args:
        targets: ``[num_source]`` target of each source entity, negative if it has none.
        links: ``[num_links, 2]``.
    """
    ranks = np.where(targets[links[:, 0]] == links[:, 1], 1.0, np.inf)
    return Ranks(in_pool=ranks, in_all=ranks)


def matched_metrics(ranks: Ranks, missed_share: float = 0.0) -> dict[str, Any]:
    """Compute Hit@1, which equals recall; metrics that need a ranking are ``None``.

    Args:
        ranks: Ranks of the test links that can be found.
        missed_share: Share of all test links that no method can find.
    """
    absent = dict.fromkeys([*(f"hit@{cut}" for cut in HIT_CUTS), "mrr", "mr"])
    found = float(np.mean(ranks.in_pool <= 1)) if len(ranks.in_pool) else float("nan")
    found *= 1 - missed_share
    return {**absent, "hit@1": found, "all_targets": {**absent, "hit@1": found}}
