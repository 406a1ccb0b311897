"""The match model of the two-way step: features, weights and calibration."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from emea.config.settings.em import ALL_FEATURES, FEATURES
from emea.em.examples import Examples, source_examples, stacked_examples, target_examples
from emea.em.m_step import fit_weights
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import OUT_OF_THE_QUESTION, PairTable

PRIORS = dict(zip(ALL_FEATURES, (0.5, 3.0, 1.0, 6.0, 3.0, 2.0), strict=True))
"""Weight of each feature without any link; fitted weights are not negative."""

UNMATCHED, UNMATCHED_PRIOR = "unmatched", 2.0
"""The option to match none of the candidates, and its weight without any link."""


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Holds the features of the pairs of a table, from the source side and from the target side.

    Args:
        table: The pairs.
        log_probs: ``[num_source, width]`` log q(e'|e) and log q(e|e') of the neural model.
        log_rest: ``[num_source]`` and ``[num_target]`` log probability, by the neural model, of all
            entities that are not candidates.
        evidence: ``[num_source, width]`` features by name that are equal from both sides.
    """

    table: PairTable
    log_probs: tuple[Tensor, Tensor]
    log_rest: tuple[Tensor, Tensor]
    evidence: dict[str, Tensor]


class MatchModel:
    """A multinomial logit over an entity's candidates and the option to match none of them.

    From the source side it is ``p(e'|e) ~ exp(w . f(e, e'))``, and from the target side ``p(e|e')``
    with the same weights. Entities that are not candidates have the neural model's probability
    and no evidence. The belief in a pair is the product of both sides. The weights are fitted by
    maximum likelihood on links from both sides with a normal prior, which is a convex problem.

    Args:
        features: Names of the features.
        unmatched: Whether an entity may match none of its candidates.
        both: Whether beliefs are normalised on both sides; if false, only on the source side.
        ridge: Strength of the prior.
    """

    def __init__(
        self,
        features: Sequence[str] = FEATURES,
        unmatched: bool = True,
        both: bool = True,
        ridge: float = 0.01,
    ) -> None:
        unknown = set(features) - set(PRIORS)
        if unknown or not features:
            raise ValueError(f"features must be some of {', '.join(PRIORS)}, got {list(features)}")
        self.names = [*features, *([UNMATCHED] if unmatched else [])]
        self.unmatched = unmatched
        self.both = both
        self.ridge = ridge
        self.prior = torch.tensor([PRIORS.get(name, UNMATCHED_PRIOR) for name in self.names])
        self.weights = self.prior.double()

    def examples(self, table: PairTable, links: Tensor) -> list[Examples]:
        """Return what a fit on these links needs of a table: the examples of each side."""
        sides = [source_examples(table, links)]
        return [*sides, target_examples(table, links)] if self.both else sides

    def fit(self, features: PairFeatures, examples: Sequence[Examples]) -> None:
        """Fit the weights on the examples of links that the encoder has not been trained on."""
        given = [self._example_values(features, side, part) for side, part in enumerate(examples)]
        values, offsets, slots = stacked_examples(given)
        if not self.unmatched:
            known = slots >= 0
            values, offsets, slots = values[known], offsets[known], slots[known]
        least = torch.tensor([0.0 if name in PRIORS else -torch.inf for name in self.names])
        self.weights = fit_weights(
            values,
            slots,
            self.ridge,
            prior=self.prior.double(),
            least=least.double(),
            offsets=offsets,
        )

    def encoder_beliefs(self, features: PairFeatures) -> Tensor:
        """Return the log belief in each pair that follows from the encoder's similarity only."""
        forth, back = features.log_probs
        return forth + back if self.both else forth

    def beliefs(self, features: PairFeatures) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log probability of each pair from the source side, the target side, and both.

        The last one is the product of the two sides. Each has the shape ``[num_source, width]`` and
        is minus infinity in empty slots.
        """
        table, weights = features.table, self.weights.to(features.log_probs[0])
        forth, back = (self._logits(features, side, weights) for side in (0, 1))
        forth = torch.where(table.filled, forth, OUT_OF_THE_QUESTION)
        back = torch.where(table.filled, back, OUT_OF_THE_QUESTION)
        none_forth, none_back = (self._none(features, side, weights) for side in (0, 1))
        whole = torch.logsumexp(torch.cat([forth, none_forth.unsqueeze(1)], dim=1), dim=1)
        from_source = forth - whole.unsqueeze(1)
        if not self.both:
            return from_source, torch.zeros_like(from_source), from_source
        from_target = back - table.logsumexp_by_target(back, none_back)[table.targets]
        return from_source, from_target, from_source + from_target

    def _logits(self, features: PairFeatures, side: int, weights: Tensor) -> Tensor:
        named = {"similarity": features.log_probs[side], **features.evidence}
        total = torch.zeros_like(features.log_probs[side])
        for name, weight in zip(self.names, weights, strict=True):
            if name != UNMATCHED:
                total = torch.addcmul(total, named[name], weight)
        return total

    def _none(self, features: PairFeatures, side: int, weights: Tensor) -> Tensor:
        """Return the logit of matching none of the candidates."""
        rest = features.log_rest[side]
        if not self.unmatched:
            return torch.full_like(rest, OUT_OF_THE_QUESTION)
        seen = weights[self.names.index("similarity")] if "similarity" in self.names else 0.0
        return rest * seen + weights[-1]

    def _example_values(
        self, features: PairFeatures, side: int, examples: Examples
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return features, offsets and correct slots of the examples of one side, on the CPU.

        Args:
            features: Features of all pairs.
            side: 0 for source entities, 1 for target entities.
            examples: The entities of that side.
        """
        named = {"similarity": features.log_probs[side], **features.evidence}
        columns = [named[name] for name in self.names if name != UNMATCHED]
        none = columns[0].new_zeros(len(examples.ids), len(columns))
        if "similarity" in self.names:
            none[:, self.names.index("similarity")] = features.log_rest[side][examples.ids]
        values = examples.values(columns, none)
        if not self.unmatched:
            return values, examples.offsets(-torch.inf), examples.slots
        values = pad(values, (0, 1))
        values[:, -1, -1] = 1
        return values, examples.offsets(0.0), examples.slots_or_none()


MARGIN = 1e-6
"""Smallest distance of a probability from 0 and 1, so that its logit is finite."""


def calibrated(beliefs: Beliefs, links: Tensor, ridge: float = 0.01) -> Beliefs:
    """Return the same candidates in the same order, with the best one's probability calibrated.

    This is Platt scaling: the probability that an entity's best candidate is correct is
    ``sigmoid(a logit(p) + c)``, with a >= 0 and c fitted on links by maximum likelihood and a prior
    around the identity. If the best candidate gains probability, "no match" loses it first, and
    then the other candidates in proportion. If it loses probability, "no match" gains it.

    Args:
        beliefs: Rows that sum to at most 1.
        links: ``[num_links, 2]`` held-out links. Without links, the beliefs are returned unchanged.
        ridge: Strength of the prior.
    """
    if not len(links):
        return beliefs
    best = beliefs.probs.max(1).values
    right = beliefs.best_targets()[links[:, 0]] == links[:, 1]
    slope, shift = _fitted(_logit(best[links[:, 0]]), right, ridge)
    scaled = torch.where(best > 0, torch.sigmoid(slope * _logit(best) + shift), 0.0)
    is_best = torch.zeros_like(beliefs.probs, dtype=torch.bool)
    is_best.scatter_(1, beliefs.best_slots().unsqueeze(1), True)
    # scale instead of subtracting: if the best is nearly 1, rounding would set the others to 0
    others = beliefs.probs.masked_fill(is_best, 0).sum(1)
    room = torch.where(others > 0, ((1 - scaled) / others.clamp(min=MARGIN)).clamp(max=1), 0.0)
    # the other candidates must stay below the best one
    second = beliefs.probs.topk(min(2, beliefs.num_candidates), dim=1).values[:, -1]
    room = torch.minimum(room, (1 - MARGIN) * scaled / second.clamp(min=MARGIN))
    probs = torch.where(is_best, scaled.unsqueeze(1), beliefs.probs * room.unsqueeze(1))
    return Beliefs(beliefs.targets, probs)


def _fitted(logits: Tensor, right: Tensor, ridge: float) -> tuple[float, float]:
    """Fit slope and shift of the calibration: slot 1 means correct, slot 0 means wrong."""
    values = torch.zeros(len(logits), 2, 2, dtype=torch.float64)
    values[:, 1, 0] = logits.cpu()
    values[:, 1, 1] = 1
    prior, least = torch.tensor([1.0, 0.0]).double(), torch.tensor([0.0, -torch.inf]).double()
    slope, shift = fit_weights(values, right.long().cpu(), ridge, prior, least=least).tolist()
    return slope, shift


def _logit(probs: Tensor) -> Tensor:
    return torch.logit(probs.clamp(MARGIN, 1 - MARGIN))
