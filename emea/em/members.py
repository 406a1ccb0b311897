"""Joint steps of ensembles: weights of the members, and the mean of their beliefs."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import NO_MATCH
from emea.data.protocol import Visible
from emea.em.counterparts import Share
from emea.em.earlier_fits import calibrated
from emea.em.joint import JointStep, StepWrapper, links_on
from emea.em.m_step import Choices, fit_weights, stacked_examples
from emea.em.normaliser import DEFAULT_SHARPNESS
from emea.em.reports import JointReport, NeuralBeliefs
from emea.em.two_way_step import LIKELY
from emea.fit.alignment_module import AlignmentModule
from emea.matching.beliefs import Beliefs, Matching
from emea.matching.pair_table import PairRanking, ScoredPairs, tabulate
from emea.matching.similarity import Decoder, Similarity

NUM_RIVALS = 100
"""Most similar entities that a link's counterpart is compared with."""


class WeightedMembers(StepWrapper):
    """Weighs the members of an ensemble before their mean embeddings are used."""

    def embeddings(
        self, module: AlignmentModule, visible: Visible
    ) -> tuple[Tensor, Tensor]:
        """Return the embeddings by weights that are fitted on the normaliser's links."""
        rows = module.member_rows()
        links = links_on(visible.normaliser_links, rows[0].device)
        module.weigh_members(member_weights(rows, module.num_source, links))
        return self.step.embeddings(module, visible)


class IndependentMembers(WeightedMembers):
    """Runs a step for each member of an ensemble; the run answers with the mean of their beliefs.

    Args:
        step: The step, which ranks pairs.
        decoder: Computes the similarity from embeddings.
        first_shared_fit: From this fit on, all members train on the labels that follow from the
            mean of their beliefs, before on their own. The first training is fit 0. With ``None``
            they never share labels.
    """

    def __init__(
        self, step: JointStep, decoder: Decoder, first_shared_fit: int | None
    ) -> None:
        super().__init__(step)
        self.decoder = decoder
        self.first_shared_fit = first_shared_fit
        self._module: AlignmentModule | None = None

    def embeddings(
        self, module: AlignmentModule, visible: Visible
    ) -> tuple[Tensor, Tensor]:
        """Return the embeddings; the members are used again in the step."""
        self._module = module
        return super().embeddings(module, visible)

    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        """Return the mean of the members' reports, and the reports that label the next fit."""
        assert self._module is not None, "the embeddings come first"
        neural = replace(neural, searched=None)  # the search used the mean similarity
        num_source = similarity.num_source
        similarities = (
            self.decoder(rows[:num_source], rows[num_source:])
            for rows in self._module.member_rows()
        )
        views = visible.of_members(self._module.num_members)
        members = tuple(
            self.step(one, view, neural)
            for one, view in zip(similarities, views, strict=True)
        )
        mean = mean_report(members, similarity, visible)
        if (
            self.first_shared_fit is not None
            and neural.iteration + 1 >= self.first_shared_fit
        ):
            members = (mean,) * len(members)
        return replace(mean, members=members)


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
    certain = links_on(visible.certain, device)
    validation = links_on(visible.validation, device)
    rankings = [_ranking(report) for report in reports]
    if visible.is_crossed:
        rankings = _out_of_fold(rankings, visible)
    ranking = mean_ranking(rankings, similarity)
    pairs = Matching.mutual(ranking).pairs().cpu().numpy()
    free = ~(
        np.isin(pairs[:, 0], visible.train[:, 0])
        | np.isin(pairs[:, 1], visible.train[:, 1])
    )
    beliefs = _as_beliefs(ranking)
    shares = _mean_shares(reports)
    share = 1.0 if shares is None else shares[0].value
    if shares is not None:
        free &= (beliefs.probs.sum(1) >= LIKELY).cpu().numpy()[pairs[:, 0]]
    return JointReport(
        beliefs=calibrated(beliefs, validation, share=share).clamped(certain),
        labels=pairs[free],
        weights=_mean_of([report.weights for report in reports]),
        compatibility=torch.stack([report.compatibility for report in reports]).mean(0),
        ranking=ranking,
        is_answer=all(report.is_answer for report in reports),
        details=_mean_of([report.details for report in reports]),
        shares=shares,
        votes=torch.stack([_best_targets(_ranking(report)) for report in reports]),
    )


def mean_ranking(
    rankings: Sequence[PairRanking], similarity: Similarity
) -> PairRanking:
    """Return the logarithm of the mean belief in each pair of any ranking.

    Args:
        rankings: Pairs with their log beliefs.
        similarity: Orders the pairs of an entity in the table.
    """
    num_source = rankings[0].table.num_source
    num_target = rankings[0].table.num_target
    # all pairs of all rankings in two flat lists: a pair is the number source * num_target + target
    keys = []
    beliefs = []
    for ranking in rankings:
        held = ranking.table.filled & (ranking.scores > -torch.inf)
        keys.append(ranking.table.keys()[held])
        beliefs.append(ranking.scores[held].exp())
    # each distinct pair once, in ascending order, with the sum of its beliefs; a ranking without
    # the pair adds nothing, which is a belief of 0
    distinct, index = torch.unique(torch.cat(keys), return_inverse=True)
    total = beliefs[0].new_zeros(len(distinct)).index_add_(0, index, torch.cat(beliefs))
    # a table with one row per source entity. No pair is preferred, and rows may be as wide as
    # needed, so that every pair has a slot
    sources = distinct // num_target
    targets = distinct % num_target
    pairs = ScoredPairs(sources, targets, similarity.of_pairs(sources, targets))
    preference = torch.zeros_like(sources)
    table = tabulate(pairs, preference, num_source, num_target, len(distinct))
    # the table orders pairs by similarity, so each filled slot looks up the sum of its pair
    scores = torch.full_like(table.scores, -torch.inf, dtype=total.dtype)
    place = torch.searchsorted(distinct, table.keys()[table.filled])
    scores[table.filled] = (total / len(rankings)).log()[place]
    return PairRanking(table, scores)


def _out_of_fold(
    rankings: Sequence[PairRanking], visible: Visible
) -> list[PairRanking]:
    """Return rankings in which a crossed link's entity has the pairs of one encoder only.

    This is the encoder that held the link out. Its beliefs are multiplied by the number of
    encoders, so that they equal the mean over all encoders.
    """
    found = []
    for ranking, view in zip(rankings, visible.of_members(len(rankings)), strict=True):
        scores = ranking.scores.clone()
        scores[view.train[:, 0]] = -torch.inf
        scores[view.validation[:, 0]] += math.log(len(rankings))
        found.append(PairRanking(ranking.table, scores))
    return found


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


def _best_targets(ranking: PairRanking) -> Tensor:
    """Return each source entity's best target, ``NO_MATCH`` if it has no candidate."""
    best = ranking.scores.max(1, keepdim=True)
    targets = ranking.table.targets.gather(1, best.indices)
    return torch.where(best.values > -torch.inf, targets, NO_MATCH).squeeze(1)


def _mean_shares(reports: Sequence[JointReport]) -> tuple[Share, ...] | None:
    """Return the mean of estimated shares and of their bounds; all use the same links."""
    known = [report.shares for report in reports if report.shares is not None]
    if not known:
        return None
    return tuple(Share(*numbers) for numbers in np.mean(known, axis=0).tolist())


def _mean_of(numbers: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in numbers])) for name in numbers[0]}


def member_weights(
    members: Sequence[Tensor], num_source: int, links: Tensor, ridge: float = 1e-4
) -> Tensor:
    """Return ``[num_members]`` weights that sum to 1; equal weights without links.

    The weights are those of a multinomial logit ``p(e'|e) ~ exp(sum_m beta_m cos_m(e, e'))`` and
    of the same from the target side. They are fitted by maximum likelihood with a normal prior
    around equal weights. Only the most similar entities by the mean cosine compete, so the memory
    does not grow with the product of links and entities.

    Args:
        members: ``[num_entities, width]`` unit vectors of each member, source entities first.
        num_source: Number of source entities.
        links: ``[num_links, 2]`` links that no member was trained on.
        ridge: Strength of the prior.
    """
    equal = torch.full((len(members),), 1 / len(members))
    if not len(links):
        return equal
    sides = [(rows[:num_source], rows[num_source:]) for rows in members]
    forth = _cosines(sides, links)
    back = _cosines([(target, source) for source, target in sides], links.flip(1))
    right = torch.zeros(len(links), dtype=torch.int64)
    examples = [
        Choices(values, torch.zeros(values.shape[:2]), right)
        for values in (forth, back)
    ]
    values, offsets, slots = stacked_examples(examples)
    prior = DEFAULT_SHARPNESS * equal.double()
    fitted = fit_weights(values, slots, ridge, prior=prior, offsets=offsets)
    if not fitted.sum() > 0:
        return equal
    return (fitted / fitted.sum()).float()


def _cosines(sides: Sequence[tuple[Tensor, Tensor]], links: Tensor) -> Tensor:
    """Return ``[num_links, 1 + num_rivals, num_members]`` cosines, the right target first."""
    num_target = len(sides[0][1])
    num_rivals = min(NUM_RIVALS, num_target - 1)
    examples = []
    for part in torch.split(links, max(1, 2**26 // num_target)):
        own, right = part.T
        cosines = torch.stack(
            [source[own] @ target.T for source, target in sides], dim=2
        )
        mean = cosines.mean(2).scatter(1, right.unsqueeze(1), -torch.inf)
        slots = torch.cat(
            [right.unsqueeze(1), mean.topk(num_rivals, dim=1).indices], dim=1
        )
        examples.append(
            cosines.gather(1, slots.unsqueeze(2).expand(-1, -1, len(sides))).cpu()
        )
    return torch.cat(examples)
