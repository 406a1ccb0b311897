"""A one-to-one assignment inside the test pool, for comparison with methods that know the pool."""

from dataclasses import replace

import torch

from emea.data.arrays import IntArray
from emea.matching.pair_table import OUT_OF_THE_QUESTION, PairRanking

ROUNDS = 20
"""Normalisations of each side."""

LEAST_LOG = -1e4
"""Smallest logarithm of a belief, so that impossible pairs stay finite."""


def pool_assignment(ranking: PairRanking, test: IntArray, rounds: int = ROUNDS) -> PairRanking:
    """Return the ranked pairs between test entities, normalised on both sides in turn (Sinkhorn).

    Each test entity has exactly one counterpart among the test entities of the other graph. The
    assignment uses this knowledge, which a user of the method does not have. It does not use which
    entities are linked.

    Args:
        ranking: Pairs with the logarithms of their beliefs.
        test: ``[num_links, 2]`` test links.
        rounds: Number of normalisations of each side.
    """
    table = ranking.table
    device = table.targets.device
    sources = torch.zeros(table.num_source, dtype=torch.bool, device=device)
    targets = torch.zeros(table.num_target, dtype=torch.bool, device=device)
    sources[torch.from_numpy(test[:, 0].copy()).to(device)] = True
    targets[torch.from_numpy(test[:, 1].copy()).to(device)] = True
    inside = table.filled & sources.unsqueeze(1) & targets[table.targets]
    table = replace(table, filled=inside)
    nothing = ranking.scores.new_full((table.num_target,), OUT_OF_THE_QUESTION)
    scores = ranking.scores.clamp(min=LEAST_LOG).masked_fill(~inside, OUT_OF_THE_QUESTION)
    for _ in range(rounds):
        scores = scores - scores.logsumexp(1, keepdim=True)
        scores = scores.masked_fill(~inside, OUT_OF_THE_QUESTION)
        scores = scores - table.logsumexp_by_target(scores, nothing)[table.targets]
        scores = scores.masked_fill(~inside, OUT_OF_THE_QUESTION)
    return PairRanking(table, scores)
