"""Ranks of test links by q* or by the fused ranking of em=dual."""

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.evaluation.ranks import Ranks
from emea.kernels.flat_groups import expand_ranges, group_sizes
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking, PairTable, ScoredPairs
from emea.matching.similarity import Similarity
from emea.runtime.block_memory import block_budget, in_smaller_blocks

PAIRS_PER_BLOCK = {"cpu": 2**20, "cuda": 2**24}
"""Listed pairs of the links that are ranked at a time, per type of device."""


@in_smaller_blocks
def fused_ranks(
    neural: Ranks,
    similarity: Similarity | None,
    ranking: PairRanking,
    links: IntArray,
    *,
    pool: IntArray | None = None,
    reverse: bool = False,
) -> Ranks:
    """Rank the links' targets with the ranked pairs of a source entity before all other targets.

    Equal scores share the mean of their ranks. A target outside the ranked pairs comes after them,
    in the neural order: ranked pairs that the encoder puts after it, or level with it, move
    before it.

    Args:
        neural: Ranks of the same links by the encoder.
        similarity: Similarity of the encoder; ``None`` if a target outside the ranked pairs keeps
            its neural rank.
        ranking: The ranked pairs, source to target.
        links: ``[num_links, 2]``; with ``reverse`` (target, source).
        pool: Entities of the pool; ``None`` means the links' second column.
        reverse: Rank sources for targets; neural ranks and similarity must be reversed as well.
    """
    num_rows = ranking.table.num_source
    num_columns = ranking.table.num_target
    if reverse:
        num_rows, num_columns = num_columns, num_rows
    entities = _members(links[:, 0], num_rows, ranking.scores)
    listed = _listed(ranking, entities, reverse)
    pooled = _members(
        links[:, 1] if pool is None else pool, num_columns, ranking.scores
    )
    width = -(-len(listed.sources) // max(1, int(entities.sum())))
    size = max(1, block_budget(PAIRS_PER_BLOCK, entities.device) // max(1, width))
    pairs = torch.from_numpy(links.copy()).to(entities.device)
    blocks = [
        _ranked_before(similarity, listed, pooled, *part.T.contiguous())
        for part in torch.split(pairs, size)
    ]
    found = torch.cat([found for found, _ in blocks]).cpu().numpy()
    before = torch.cat([before for _, before in blocks], dim=1).cpu().numpy()
    in_pool, in_all = (
        np.where(found, 1.0 + added, ranks + added)
        for added, ranks in zip(before, (neural.in_pool, neural.in_all), strict=True)
    )
    return Ranks(in_pool=in_pool, in_all=in_all)


def _listed(ranking: PairRanking, entities: Tensor, reverse: bool) -> ScoredPairs:
    """Return the row, column and score of each pair of some entities.

    Args:
        ranking: The ranked pairs, source to target.
        entities: Whether the pairs of each source entity are wanted; with ``reverse`` of each
            target entity.
        reverse: Return the targets as rows.
    """
    table = ranking.table
    wanted = entities[table.targets] if reverse else entities.unsqueeze(1)
    rows, slots = (table.filled & wanted).nonzero(as_tuple=True)
    columns = table.targets[rows, slots]
    scores = ranking.scores[rows, slots]
    if not reverse:
        return ScoredPairs(rows, columns, scores)
    columns, order = torch.sort(columns, stable=True)
    return ScoredPairs(columns, rows[order], scores[order])


def _ranked_before(
    similarity: Similarity | None,
    listed: ScoredPairs,
    pooled: Tensor,
    sources: Tensor,
    right: Tensor,
) -> tuple[Tensor, Tensor]:
    """Compare the listed pairs of some links' sources with the links.

    Returns:
        ``[num_links]`` whether the target is in one of the listed pairs, and ``[2, num_links]`` the
        number of listed pairs before the target, in the pool and among all. A tied pair counts as
        1/2.
    """
    first = torch.searchsorted(listed.sources, sources)
    sizes = torch.searchsorted(listed.sources, sources, right=True) - first
    link, entry = expand_ranges(first, sizes)
    columns = listed.targets[entry]
    scores = listed.scores[entry]
    hits = (columns == right[link]).nonzero().squeeze(1)
    found = torch.zeros(len(sources), dtype=torch.bool, device=sources.device)
    found[link[hits]] = True
    # Empty slots may repeat a candidate; its first place counts.
    own = scores.new_full((len(sources),), -torch.inf)
    own.scatter_reduce_(0, link[hits], scores[hits], "amax")
    better = scores > own[link]
    equal = scores == own[link]
    lost = (~found[link]).nonzero().squeeze(1)
    if similarity is None:
        better[lost] = equal[lost] = False
    else:
        # Both come from the same function, so that ties are exact.
        reference = similarity.of_pairs(sources, right)[link[lost]]
        nearness = similarity.of_pairs(sources[link[lost]], columns[lost])
        better[lost], equal[lost] = nearness < reference, nearness == reference
    before = []
    for inside in (pooled[columns], torch.ones_like(better)):
        num_better, num_equal = (
            group_sizes(link, len(sources), counted & inside).double()
            for counted in (better, equal)
        )
        # The neural rank already contains half of each tied pair.
        num_equal = torch.where(found, (num_equal - 1).clamp(min=0), num_equal)
        before.append(num_better + num_equal / 2)
    return found, torch.stack(before)


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
    ranking = _by_belief(
        beliefs, torch.ones_like(beliefs.probs).bool(), similarity.num_target
    )
    moves = None if similarity.scope is None else similarity
    return fused_ranks(neural, moves, ranking, links, pool=pool)


def candidate_ranks(beliefs: Beliefs, links: IntArray) -> Ranks:
    """Rank the links' targets by probability, using only the beliefs.

    A target that is not a candidate, or has probability 0, gets rank infinity and counts as missed.
    Equal probabilities keep the neural order.

    Args:
        beliefs: Candidates in neural order with their probabilities.
        links: ``[num_links, 2]``; their targets are the pool.
    """
    num_target = max(beliefs.num_target, 1 + int(links[:, 1].max(initial=0)))
    missed = np.full(len(links), np.inf)
    ranking = _by_belief(beliefs, beliefs.probs > 0, num_target)
    return fused_ranks(Ranks(missed, missed), None, ranking, links)


def _by_belief(beliefs: Beliefs, filled: Tensor, num_target: int) -> PairRanking:
    """Return some of the candidates, ranked by probability, then in the neural order."""
    order = torch.argsort(beliefs.probs, dim=1, descending=True, stable=True)
    places = torch.argsort(order, dim=1).to(beliefs.probs)
    return PairRanking(
        PairTable(beliefs.targets, beliefs.probs, filled, num_target), -places
    )


def _members(entities: IntArray, num_entities: int, like: Tensor) -> Tensor:
    """Return whether each entity of a graph is one of the given, ``[num_entities]``."""
    members = torch.zeros(num_entities, dtype=torch.bool, device=like.device)
    members[torch.from_numpy(entities.copy()).to(like.device)] = True
    return members
