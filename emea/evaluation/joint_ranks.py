"""Ranks of test links by q* or by the fused ranking of em=dual."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.evaluation.ranks import Ranks
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking, ScoredPairs, expand_ranges, group_sizes
from emea.matching.similarity import Similarity
from emea.runtime.block_memory import block_budget, in_smaller_blocks

PAIRS_PER_BLOCK = {"cpu": 2**20, "cuda": 2**24}
"""Listed pairs of the links that are ranked at a time, per type of device."""


class Counts(NamedTuple):
    """Holds what the listed pairs of an entity add to the rank of a link's target.

    Args:
        found: ``[num_links]`` whether the target is in one of the listed pairs.
        before: ``[2, num_links]`` number of listed pairs before the target, in the pool and among
            all; a tied pair counts as 1/2.
    """

    found: Tensor
    before: Tensor


@in_smaller_blocks
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
    num_rows = ranking.table.num_target if reverse else ranking.table.num_source
    entities = _members(links[:, 0], num_rows, ranking.scores)
    listed = _listed(ranking, entities, reverse)
    pooled = _members(links[:, 1] if pool is None else pool, similarity.num_target, listed.sources)

    def counted(sources: Tensor, right: Tensor) -> Counts:
        return _ranked_before(similarity, listed, pooled, sources, right)

    width = -(-len(listed.sources) // max(1, int(entities.sum())))
    return _merged(neural, _in_blocks(counted, links, width, listed.sources.device))


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
    columns, scores = table.targets[rows, slots], ranking.scores[rows, slots]
    if not reverse:
        return ScoredPairs(rows, columns, scores)
    columns, order = torch.sort(columns, stable=True)
    return ScoredPairs(columns, rows[order], scores[order])


def _ranked_before(
    similarity: Similarity, listed: ScoredPairs, pooled: Tensor, sources: Tensor, right: Tensor
) -> Counts:
    """Compare the listed pairs of some links' sources with the links."""
    first = torch.searchsorted(listed.sources, sources)
    sizes = torch.searchsorted(listed.sources, sources, right=True) - first
    link, entry = expand_ranges(first, sizes)
    columns, scores = listed.targets[entry], listed.scores[entry]
    hits = (columns == right[link]).nonzero().squeeze(1)
    found = torch.zeros(len(sources), dtype=torch.bool, device=sources.device)
    found[link[hits]] = True
    own = scores.new_full((len(sources),), torch.inf)
    own[link[hits]] = scores[hits]
    better, equal = scores > own[link], scores == own[link]
    # Both come from the same function, so that ties are exact.
    lost = (~found[link]).nonzero().squeeze(1)
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
    return Counts(found, torch.stack(before))


@in_smaller_blocks
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
    pooled = _members(links[:, 1] if pool is None else pool, similarity.num_target, beliefs.targets)

    def counted(sources: Tensor, right: Tensor) -> Counts:
        targets, probs = beliefs.targets[sources], beliefs.probs[sources]
        found, is_before = _preceding(targets, probs, targets == right.unsqueeze(1))
        before = is_before.double()
        before[~found] = 0.0
        if similarity.scope is not None:
            lost = (~found).nonzero().squeeze(1)
            before[lost] = _passing(similarity, targets[lost], sources[lost], right[lost])
        return Counts(found, torch.stack([(before * pooled[targets]).sum(1), before.sum(1)]))

    counts = _in_blocks(counted, links, beliefs.num_candidates, beliefs.targets.device)
    return _merged(neural, counts)


def candidate_ranks(beliefs: Beliefs, links: IntArray) -> Ranks:
    """Rank the links' targets by probability, using only the beliefs.

    A target that is not a candidate, or has probability 0, gets rank infinity and counts as missed.
    Equal probabilities keep the neural order.

    Args:
        beliefs: Candidates in neural order with their probabilities.
        links: ``[num_links, 2]``; their targets are the pool.
    """
    num_target = max(beliefs.num_target, 1 + int(links[:, 1].max(initial=0)))
    pooled = _members(links[:, 1], num_target, beliefs.targets)

    def counted(sources: Tensor, right: Tensor) -> Counts:
        targets, probs = beliefs.targets[sources], beliefs.probs[sources]
        hits = (targets == right.unsqueeze(1)) & (probs > 0)
        found, before = _preceding(targets, probs, hits)
        return Counts(found, torch.stack([(before & pooled[targets]).sum(1), before.sum(1)]))

    counts = _in_blocks(counted, links, beliefs.num_candidates, beliefs.targets.device)
    missed = np.full(len(links), np.inf)
    return _merged(Ranks(missed, missed), counts)


def _preceding(targets: Tensor, probs: Tensor, hits: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether a link's target is a candidate, and which candidates come before it.

    Args:
        targets: ``[num_links, k]`` candidates in neural order.
        probs: ``[num_links, k]`` their probabilities.
        hits: ``[num_links, k]`` whether the candidate is the link's target.
    """
    slot = hits.int().argmax(1, keepdim=True)
    own = probs.gather(1, slot)
    position = torch.arange(targets.shape[1], device=targets.device)
    return hits.any(1), (probs > own) | ((probs == own) & (position < slot))


def _passing(similarity: Similarity, targets: Tensor, sources: Tensor, right: Tensor) -> Tensor:
    """Return how much each candidate adds to the neural rank of a target that is not a candidate.

    A candidate that the encoder ranks after the target adds 1. A tied candidate adds 1/2, because
    the neural rank already contains the other half.
    """
    own = similarity.of_pairs(sources, right).unsqueeze(1)
    rows = sources.repeat_interleave(targets.shape[1])
    scores = similarity.of_pairs(rows, targets.flatten()).view(targets.shape)
    return (scores < own).double() + (scores == own).double() / 2


def _members(entities: IntArray, num_entities: int, like: Tensor) -> Tensor:
    """Return whether each entity of a graph is one of the given, ``[num_entities]``."""
    members = torch.zeros(num_entities, dtype=torch.bool, device=like.device)
    members[torch.from_numpy(entities.copy()).to(like.device)] = True
    return members


def _in_blocks(
    counted: Callable[[Tensor, Tensor], Counts], links: IntArray, width: int, device: torch.device
) -> Counts:
    """Return the counts of all links, computed in blocks of bounded memory."""
    size = max(1, block_budget(PAIRS_PER_BLOCK, device) // max(1, width))
    pairs = torch.from_numpy(links.copy()).to(device)
    blocks = [counted(*part.T.contiguous()) for part in torch.split(pairs, size)]
    return Counts(
        torch.cat([block.found for block in blocks]),
        torch.cat([block.before for block in blocks], dim=1),
    )


def _merged(neural: Ranks, counts: Counts) -> Ranks:
    """Return the ranks. Found targets rank among the listed pairs, all others after them."""
    found, before = counts.found.cpu().numpy(), counts.before.double().cpu().numpy()
    in_pool, in_all = (
        np.where(found, 1.0 + added, ranks + added)
        for added, ranks in zip(before, (neural.in_pool, neural.in_all), strict=True)
    )
    return Ranks(in_pool=in_pool, in_all=in_all)
