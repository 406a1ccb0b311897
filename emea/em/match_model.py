"""The match models of the two-way step: features of pairs, their weights and the beliefs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from emea.em.counterparts import Share, estimated_shares, weighted_examples
from emea.em.m_step import (
    Examples,
    fit_weights,
    source_examples,
    stacked_examples,
    target_examples,
)
from emea.em.settings import ALL_FEATURES, TwoWaySettings
from emea.matching.matching_marginals import (
    MatchingMessages,
    log_marginals,
    matching_messages,
)
from emea.matching.pair_table import OUT_OF_THE_QUESTION, PairTable

UNMATCHED, COMPETITION = "unmatched", "competition"
"""The option to match none of the candidates, and the messages of the other side's entities."""

PRIORS = {
    **dict(zip(ALL_FEATURES, (0.5, 3.0, 1.0, 6.0, 3.0, 2.0), strict=True)),
    **{UNMATCHED: 2.0, COMPETITION: 1.0},
}
"""Weight of each feature without any link. Only the fitted weight of ``unmatched`` may be negative.
"""


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """The features of the pairs of a table, from the source side and from the target side.

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


class BeliefModel(ABC):
    """Computes beliefs from the weighted features of pairs, and fits the weights on links.

    Args:
        settings: Settings of the two-way step.
        names: The feature of each weight.

    Attributes:
        weights: The current weights, in the order of the names; without links, those of the prior.
        shares: Estimated share of each side's unlabelled entities that have a counterpart; ``None``
            before there is an estimate.
    """

    def __init__(self, settings: TwoWaySettings, names: Sequence[str]) -> None:
        self.both = settings.both_directions
        self.ridge = settings.ridge
        self.names = list(names)
        self.prior = torch.tensor([PRIORS[name] for name in names]).double()
        least = [-torch.inf if name == UNMATCHED else 0.0 for name in names]
        self.least = torch.tensor(least).double()
        self.weights = self.prior
        self.shares: tuple[Share, ...] | None = None

    def examples(self, table: PairTable, links: Tensor) -> list[Examples]:
        """Return what a fit on these links needs of a table: the examples of each side."""
        of_source = source_examples(table, links)
        if not self.both:
            return [of_source]
        return [of_source, target_examples(table, links)]

    @abstractmethod
    def fit(
        self,
        features: PairFeatures,
        examples: Sequence[Examples],
        unlabelled: Sequence[Tensor],
    ) -> None:
        """Fit the weights on the examples of links that the encoder has not been trained on.

        Entities that ``unlabelled`` selects on each side estimate the share with a counterpart.
        """

    @abstractmethod
    def encoder_beliefs(self, features: PairFeatures) -> Tensor:
        """Return the log belief in each pair that follows from the encoder's similarity only."""

    @abstractmethod
    def beliefs(self, features: PairFeatures) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log probability of each pair from the source side, the target side, and both.

        Each has the shape ``[num_source, width]`` and is minus infinity in empty slots.
        """


class MatchModel(BeliefModel):
    """A multinomial logit over an entity's candidates and the option to match none of them.

    From the source side it is ``p(e'|e) ~ exp(w . f(e, e'))``, and from the target side ``p(e|e')``
    with the same weights. Entities that are not candidates have the neural model's probability
    and no evidence. The belief in a pair is the product of both sides. The weights are fitted by
    maximum likelihood on links from both sides with a normal prior, which is a convex problem.

    Args:
        settings: Settings of the two-way step.
    """

    def __init__(self, settings: TwoWaySettings) -> None:
        self.unmatched = settings.unmatched
        none_of_them = (UNMATCHED,) if self.unmatched else ()
        super().__init__(settings, (*settings.features, *none_of_them))

    def fit(
        self,
        features: PairFeatures,
        examples: Sequence[Examples],
        unlabelled: Sequence[Tensor],
    ) -> None:
        """Fit the weights, and with them the shares that balance a second fit."""
        given = [
            self._example_values(features, side, part)
            for side, part in enumerate(examples)
        ]
        self.weights = self._fitted(*stacked_examples(given))
        if self.unmatched and len(examples[0].ids):
            # these weights would make the products of both sides too small
            balanced = self._fitted(*weighted_examples(given, self.shares))
            matched = self.matched(features, balanced)
            self.shares = estimated_shares(matched, unlabelled, given, balanced)

    def _fitted(
        self,
        values: Tensor,
        offsets: Tensor,
        slots: Tensor,
        counts: Tensor | None = None,
    ) -> Tensor:
        """Fit the weights on examples."""
        return fit_weights(
            values,
            slots,
            self.ridge,
            prior=self.prior,
            least=self.least,
            offsets=offsets,
            counts=counts,
        )

    def matched(self, features: PairFeatures, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probability of each entity of both sides to match any candidate."""
        return _matched(features.table, *self._logits(features, weights))

    def _logits(
        self, features: PairFeatures, weights: Tensor
    ) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Return the logits of pairs, and those of matching none, from both sides."""
        weights = weights.to(features.log_probs[0])
        pairs = [
            _weighted(self._columns(features, side), weights).masked_fill(
                ~features.table.filled, OUT_OF_THE_QUESTION
            )
            for side in (0, 1)
        ]
        nones = [self._none(features, side, weights) for side in (0, 1)]
        return (pairs[0], pairs[1]), (nones[0], nones[1])

    def encoder_beliefs(self, features: PairFeatures) -> Tensor:
        """Return the encoder's log probability of each pair, from both sides if both choose."""
        forth, back = features.log_probs
        return forth + back if self.both else forth

    def beliefs(self, features: PairFeatures) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log probability of each pair from both sides, and their product."""
        table = features.table
        (forth, back), (none_forth, none_back) = self._logits(features, self.weights)
        whole = torch.logsumexp(
            torch.cat([forth, none_forth.unsqueeze(1)], dim=1), dim=1
        )
        from_source = forth - whole.unsqueeze(1)
        if not self.both:
            return from_source, torch.zeros_like(from_source), from_source
        from_target = back - table.logsumexp_by_target(back, none_back)[table.targets]
        return from_source, from_target, from_source + from_target

    def _columns(self, features: PairFeatures, side: int) -> list[Tensor]:
        """Return each feature from one side, ``[num_source, width]``, in the order of the names."""
        named = {"similarity": features.log_probs[side], **features.evidence}
        return [named[name] for name in self.names if name != UNMATCHED]

    def _none(self, features: PairFeatures, side: int, weights: Tensor) -> Tensor:
        """Return the logit of matching none of the candidates."""
        rest = features.log_rest[side]
        if not self.unmatched:
            return torch.full_like(rest, OUT_OF_THE_QUESTION)
        seen = (
            weights[self.names.index("similarity")]
            if "similarity" in self.names
            else 0.0
        )
        return rest * seen + weights[-1]

    def _example_values(
        self, features: PairFeatures, side: int, examples: Examples
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return features, offsets and slots of the examples of a side (0: source), on the CPU."""
        values, offsets, slots = examples.given(self._columns(features, side))
        if "similarity" in self.names:
            rest = features.log_rest[side][examples.ids]
            values[:, -1, self.names.index("similarity")] = rest.to(values)
        if not self.unmatched:
            offsets[:, -1] = -torch.inf
            known = slots < offsets.shape[1] - 1
            return values[known], offsets[known], slots[known]
        values = pad(values, (0, 1))
        values[:, -1, -1] = 1
        return values, offsets, slots


COMPETITION_SCALE = 0.3
"""Standard deviation of the prior of the competition, relative to those of the other weights.

With 100 links, the likelihood determines this weight badly, and a small weight harms the labels.
"""

NUM_FITS = 2
"""Fits of the weights in an update; messages are computed before each of them."""


class OneToOneModel(BeliefModel):
    """Models a distribution over partial one-to-one matchings of the pairs of a table.

    A matching has the probability ``p(M) ~ exp(sum of w . f(e, e'))`` over its pairs. The feature
    ``similarity`` of a pair is the mean of both sides' log odds against all entities that are not
    candidates, and ``unmatched`` is -1 for each pair: an entity may stay without a match. The
    belief in a pair is its marginal, approximated by belief propagation.

    The weights are fitted on links. Given the messages of the other side, the probability of an
    entity's match is a multinomial logit, and the messages are one more feature whose weight is
    ``competition``, between 0 and 1. Messages and weights are computed alternately. Each fit is
    convex; the alternation is a heuristic.

    Args:
        settings: Settings of the two-way step; both sides choose, and an entity may match none.
    """

    def __init__(self, settings: TwoWaySettings) -> None:
        super().__init__(settings, (*settings.features, UNMATCHED, COMPETITION))
        self._last: tuple[PairTable, MatchingMessages] | None = None

    def fit(
        self,
        features: PairFeatures,
        examples: Sequence[Examples],
        unlabelled: Sequence[Tensor],
    ) -> None:
        """Fit the weights on the examples of links and on their masked copies."""
        self.weights, self._last = self.prior, None
        if not len(examples[0].ids):
            return
        columns = self._pair_columns(features)
        for number in range(NUM_FITS):
            potentials = _weighted(columns, self.weights)
            messages = self._messages(features.table, potentials)
            received = messages.from_target, messages.from_source
            given = [
                part.given([*columns, of_others])
                for of_others, part in zip(received, examples, strict=True)
            ]
            if number:
                logits = [
                    potentials + float(self.weights[-1]) * one for one in received
                ]
                nones = [torch.zeros_like(rest) for rest in features.log_rest]
                matched = _matched(features.table, logits, nones)
                self.shares = estimated_shares(matched, unlabelled, given, self.weights)
            self.weights = self._fitted(*weighted_examples(given, self.shares))

    def beliefs(self, features: PairFeatures) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log marginal of each pair, ``[num_source, width]``.

        The two sides and their joint belief are equal here, so the same tensor is returned three
        times.
        """
        potentials = _weighted(self._pair_columns(features), self.weights)
        messages = self._messages(features.table, potentials)
        belief = log_marginals(
            features.table, potentials, messages, float(self.weights[-1])
        )
        return belief, belief, belief

    def encoder_beliefs(self, features: PairFeatures) -> Tensor:
        """Return the log marginals under the encoder's similarity."""
        odds = _similarity_odds(features)
        return log_marginals(
            features.table, odds, matching_messages(features.table, odds)
        )

    def _messages(self, table: PairTable, potentials: Tensor) -> MatchingMessages:
        """Return the messages under the current weights, starting from the table's last ones."""
        start = None
        if self._last is not None and self._last[0] is table:
            start = self._last[1]
        messages = matching_messages(
            table, potentials, competition=float(self.weights[-1]), start=start
        )
        self._last = table, messages
        return messages

    def _pair_columns(self, features: PairFeatures) -> list[Tensor]:
        """Return each feature, ``[num_source, width]``, in the order of the names."""
        odds = _similarity_odds(features)
        named = {
            "similarity": odds,
            UNMATCHED: torch.full_like(odds, -1.0),
            **features.evidence,
        }
        return [named[name] for name in self.names[:-1]]

    def _fitted(
        self,
        values: Tensor,
        offsets: Tensor,
        slots: Tensor,
        counts: Tensor | None = None,
    ) -> Tensor:
        """Fit all weights; if the competition would exceed 1, fix it there and fit the others."""
        scales = torch.ones_like(self.prior)
        scales[-1] = COMPETITION_SCALE
        scaled = values * scales.to(values)
        prior = self.prior / scales
        weights = scales * fit_weights(
            scaled,
            slots,
            self.ridge,
            prior=prior,
            least=self.least,
            offsets=offsets,
            counts=counts,
        )
        if weights[-1] <= 1:
            return weights
        values, offsets = values[..., :-1], offsets + values[..., -1]
        prior = self.prior[:-1]
        least = self.least[:-1]
        others = fit_weights(
            values,
            slots,
            self.ridge,
            prior=prior,
            least=least,
            offsets=offsets,
            counts=counts,
        )
        return torch.cat([others, torch.ones_like(weights[-1:])])


def _weighted(columns: Sequence[Tensor], weights: Tensor) -> Tensor:
    """Return the weighted sum of the features; further weights do not belong to a column."""
    total = torch.zeros_like(columns[0])
    for column, weight in zip(columns, weights.to(total), strict=False):
        total = torch.addcmul(total, column, weight)
    return total


def _matched(
    table: PairTable, logits: Sequence[Tensor], nones: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the probability of any match from both sides, by the logits of pairs and of none."""
    forth, back = (
        torch.where(table.filled, one, OUT_OF_THE_QUESTION) for one in logits
    )
    none_forth, none_back = nones
    of_source = torch.logsumexp(
        torch.cat([forth, none_forth.unsqueeze(1)], dim=1), dim=1
    )
    of_target = table.logsumexp_by_target(back, none_back)
    return -torch.expm1(none_forth - of_source), -torch.expm1(none_back - of_target)


def _similarity_odds(features: PairFeatures) -> Tensor:
    """Return each pair's mean of both sides' log odds against the non-candidates."""
    (forth, back), (of_source, of_target) = features.log_probs, features.log_rest
    odds = forth - of_source.unsqueeze(1) + back - of_target[features.table.targets]
    return odds / 2
