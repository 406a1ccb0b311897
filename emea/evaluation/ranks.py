"""Ranks of the right targets."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.data.arrays import FloatArray, IntArray
from emea.matching.block_memory import in_smaller_blocks
from emea.matching.similarity import Similarity


@dataclass(frozen=True, eq=False)
class Ranks:
    """Realistic ranks of each link's target: the mean over all orders of tied scores.

    Args:
        in_pool: rank among the targets of the given links (the field's convention).
        in_all: rank among all targets.
    """

    in_pool: FloatArray
    in_all: FloatArray


@in_smaller_blocks
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
    # the pool's columns come first, so that a block's part in the pool is a view of it
    similarity, place = _pool_first(similarity, pooled)
    num_pooled = len(pooled.unique())
    # written into memory that is there from the start, so that the heap cannot grow by pieces
    in_pool, in_all = similarity.source.new_empty(2, len(links), dtype=torch.float64)
    position = 0
    for rows, scores in similarity.blocks(sources):
        part = slice(position, position + len(rows))
        position += len(rows)
        right = place[targets[part]].unsqueeze(1)
        # the right target's score is read from the same block, so ties are exact
        reference = scores.gather(1, right)
        inside = rank_counts(scores[:, :num_pooled], reference)
        outside = rank_counts(scores[:, num_pooled:], reference)
        in_pool[part] = realistic_ranks(*inside).double()
        in_all[part] = realistic_ranks(inside[0] + outside[0], inside[1] + outside[1]).double()
    return Ranks(in_pool=in_pool.cpu().numpy(), in_all=in_all.cpu().numpy())


def _pool_first(similarity: Similarity, pool: Tensor) -> tuple[Similarity, Tensor]:
    """The similarity with the pool's targets first, and the new place of each target."""
    outside = torch.ones(similarity.num_target, dtype=torch.bool, device=pool.device)
    outside[pool] = False
    order = torch.argsort(outside.int(), stable=True)
    moved = replace(
        similarity,
        target=similarity.target.index_select(0, order),
        target_offset=similarity.target_offset.index_select(0, order),
        cells=None,
    )
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    return moved, place


def rank_counts(scores: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
    """How many scores of each row are better than the reference, and how many equal it.

    What is not a number counts as better: it never flatters a model.
    """
    better = scores.shape[1] - (scores <= reference).sum(1)
    return better, (scores == reference).sum(1)


def realistic_ranks(num_better: Tensor, num_equal: Tensor) -> Tensor:
    """Mean of the best and the worst rank that ties allow; the reference is one of the equal."""
    return 1 + num_better + (num_equal - 1).clamp(min=0) / 2
