"""The mean of the beliefs of several encoders, each with its own pseudo-labels."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from emea.data.protocol import Visible
from emea.em.joint import JointReport, links_on
from emea.em.match_model import calibrated
from emea.em.two_way import mutual_pairs
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking, ScoredPairs, tabulate
from emea.matching.similarity import Similarity


def mean_report(
    reports: Sequence[JointReport], similarity: Similarity, visible: Visible
) -> JointReport:
    """Return the mean of the beliefs in every pair that at least one report has.

    A report without a pair believes in it with probability 0. The probabilities are calibrated on
    the validation links, like those of each report.

    Args:
        reports: Reports of a step that ranks pairs, one for each encoder.
        similarity: Mean similarity of all encoders.
        visible: All links that may be used.
    """
    device = similarity.source.device
    train, validation = links_on(visible.train, device), links_on(visible.validation, device)
    ranking = mean_ranking([_ranking(report) for report in reports], similarity)
    matching = mutual_pairs(ranking.table, ranking.scores)
    pairs = matching.pairs().cpu().numpy()
    free = ~np.isin(pairs[:, 0], visible.train[:, 0])
    return JointReport(
        beliefs=calibrated(_as_beliefs(ranking), validation).clamped(train),
        labels=pairs[free],
        weights=_mean_of([report.weights for report in reports]),
        compatibility=torch.stack([report.compatibility for report in reports]).mean(0),
        ranking=ranking,
        is_answer=all(report.is_answer for report in reports),
        details=_mean_of([report.details for report in reports]),
    )


def mean_ranking(rankings: Sequence[PairRanking], similarity: Similarity) -> PairRanking:
    """Return the logarithm of the mean belief in each pair of any ranking.

    Args:
        rankings: Pairs with their log beliefs.
        similarity: Orders the pairs of an entity in the table.
    """
    num_target = rankings[0].table.num_target
    keys, beliefs = [], []
    for ranking in rankings:
        held = ranking.table.filled & (ranking.scores > -torch.inf)
        keys.append(ranking.table.keys()[held])
        beliefs.append(ranking.scores[held].exp())
    distinct, index = torch.unique(torch.cat(keys), return_inverse=True)
    total = beliefs[0].new_zeros(len(distinct)).index_add_(0, index, torch.cat(beliefs))
    sources, targets = distinct // num_target, distinct % num_target
    pairs = ScoredPairs(sources, targets, similarity.of_pairs(sources, targets))
    table = tabulate(
        pairs, torch.zeros_like(sources), rankings[0].table.num_source, num_target, len(distinct)
    )
    scores = torch.full_like(table.scores, -torch.inf, dtype=total.dtype)
    place = torch.searchsorted(distinct, table.keys()[table.filled])
    scores[table.filled] = (total / len(rankings)).log()[place]
    return PairRanking(table, scores)


def _ranking(report: JointReport) -> PairRanking:
    assert report.ranking is not None, "the config check requires a step with a ranking"
    return report.ranking


def _as_beliefs(ranking: PairRanking) -> Beliefs:
    """Return the candidates by belief, best first; the other probability means no match."""
    order = torch.argsort(ranking.scores, dim=1, descending=True, stable=True)
    beliefs: Tensor = ranking.scores.exp()
    # each report's beliefs sum to at most 1, but for rounding
    beliefs = beliefs / beliefs.sum(1, keepdim=True).clamp(min=1.0)
    return Beliefs(ranking.table.targets.gather(1, order), beliefs.gather(1, order))


def _mean_of(numbers: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in numbers])) for name in numbers[0]}
