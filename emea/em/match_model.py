"""The match models of the two-way step: features of pairs, their weights and the beliefs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from emea.em.counterparts import Share, estimated_shares, weighted_examples
from emea.em.m_step import (
    Choices,
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


class LogBeliefs(NamedTuple):
    """Log probabilities of the pairs of a table, ``[num_source, width]``.

    They are minus infinity in empty slots.

    Args:
        from_source: The choice of each source entity.
        from_target: The choice of each target entity; 0 if only source entities choose.
        joint: The belief in the pair, from both sides.
    """

    from_source: Tensor
    from_target: Tensor
    joint: Tensor


class SideLogits(NamedTuple):
    """The logits of one side's choices: of each pair, and of none of an entity's candidates."""

    pairs: Tensor
    none: Tensor


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

    def place(self, name: str) -> int:
        """Return the position of a feature among the weights."""
        return self.names.index(name)

    def weight(self, name: str) -> float:
        """Return the current weight of a feature."""
        return float(self.weights[self.place(name)])

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
    def beliefs(self, features: PairFeatures) -> LogBeliefs:
        """Return the log probability of each pair."""


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
        source, target = (self._logits(features, side, weights) for side in (0, 1))
        return _matched(features.table, source, target)

    def _logits(self, features: PairFeatures, side: int, weights: Tensor) -> SideLogits:
        """Return the logits of a side (0: source)."""
        weights = weights.to(features.log_probs[0])
        pairs = _weighted(self._columns(features, side), weights).masked_fill(
            ~features.table.filled, OUT_OF_THE_QUESTION
        )
        return SideLogits(pairs, self._none(features, side, weights))

    def encoder_beliefs(self, features: PairFeatures) -> Tensor:
        """Return the encoder's log probability of each pair, from both sides if both choose."""
        forth, back = features.log_probs
        return forth + back if self.both else forth

    def beliefs(self, features: PairFeatures) -> LogBeliefs:
        """Return the log probability of each pair from both sides, and their product."""
        table = features.table
        source, target = (self._logits(features, side, self.weights) for side in (0, 1))
        # the source entity of a row chooses one of its pairs, or none
        options = torch.cat([source.pairs, source.none.unsqueeze(1)], dim=1)
        whole = torch.logsumexp(options, dim=1)
        from_source = source.pairs - whole.unsqueeze(1)
        if not self.both:
            none = torch.zeros_like(from_source)
            return LogBeliefs(from_source, none, from_source)
        # the pairs of a target entity are spread over the rows
        of_target = table.logsumexp_by_target(target.pairs, target.none)
        from_target = target.pairs - of_target[table.targets]
        return LogBeliefs(from_source, from_target, from_source + from_target)

    def _columns(self, features: PairFeatures, side: int) -> list[Tensor]:
        """Return each feature from one side, ``[num_source, width]``, in the order of the names."""
        named = {"similarity": features.log_probs[side], **features.evidence}
        return [named[name] for name in self.names if name != UNMATCHED]

    def _none(self, features: PairFeatures, side: int, weights: Tensor) -> Tensor:
        """Return the logit of matching none of the candidates."""
        rest = features.log_rest[side]
        if not self.unmatched:
            return torch.full_like(rest, OUT_OF_THE_QUESTION)
        of_similarity: Tensor | float = 0.0
        if "similarity" in self.names:
            of_similarity = weights[self.place("similarity")]
        return rest * of_similarity + weights[self.place(UNMATCHED)]

    def _example_values(
        self, features: PairFeatures, side: int, examples: Examples
    ) -> Choices:
        """Return the examples of a side (0: source), on the CPU."""
        values, offsets, slots = examples.given(self._columns(features, side))
        none = values.shape[1] - 1  # the last slot means no match
        if "similarity" in self.names:
            rest = features.log_rest[side][examples.ids]
            values[:, none, self.place("similarity")] = rest.to(values)
        if not self.unmatched:
            offsets[:, none] = -torch.inf
            known = slots < none
            return Choices(values[known], offsets[known], slots[known])
        # one more feature, which is 1 for no match
        values = pad(values, (0, 1))
        values[:, none, self.place(UNMATCHED)] = 1
        return Choices(values, offsets, slots)


COMPETITION_SCALE = 0.3
"""Standard deviation of the prior of the competition, relative to those of the other weights.

With 100 links, the likelihood determines this weight badly, and a small weight harms the labels.
"""

NUM_FITS = 2
"""Fits of the weights in an update; messages are computed before each of them."""


class LastMessages(NamedTuple):
    """The last messages of a table, from which the next ones start."""

    table: PairTable
    messages: MatchingMessages


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
        self._last: LastMessages | None = None

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
                source, target = (
                    SideLogits(
                        potentials + self.weight(COMPETITION) * of_others,
                        torch.zeros_like(rest),
                    )
                    for of_others, rest in zip(received, features.log_rest, strict=True)
                )
                matched = _matched(features.table, source, target)
                self.shares = estimated_shares(matched, unlabelled, given, self.weights)
            self.weights = self._fitted(*weighted_examples(given, self.shares))

    def beliefs(self, features: PairFeatures) -> LogBeliefs:
        """Return the log marginal of each pair.

        The two sides and their joint belief are equal here, so the same tensor is returned three
        times.
        """
        potentials = _weighted(self._pair_columns(features), self.weights)
        messages = self._messages(features.table, potentials)
        belief = log_marginals(
            features.table, potentials, messages, self.weight(COMPETITION)
        )
        return LogBeliefs(belief, belief, belief)

    def encoder_beliefs(self, features: PairFeatures) -> Tensor:
        """Return the log marginals under the encoder's similarity."""
        odds = _similarity_odds(features)
        return log_marginals(
            features.table, odds, matching_messages(features.table, odds)
        )

    def _messages(self, table: PairTable, potentials: Tensor) -> MatchingMessages:
        """Return the messages under the current weights, starting from the table's last ones."""
        start = None
        if self._last is not None and self._last.table is table:
            start = self._last.messages
        messages = matching_messages(
            table, potentials, competition=self.weight(COMPETITION), start=start
        )
        self._last = LastMessages(table, messages)
        return messages

    def _pair_columns(self, features: PairFeatures) -> list[Tensor]:
        """Return each feature, ``[num_source, width]``, in the order of the names."""
        odds = _similarity_odds(features)
        named = {
            "similarity": odds,
            UNMATCHED: torch.full_like(odds, -1.0),
            **features.evidence,
        }
        return [named[name] for name in self.names if name != COMPETITION]

    def _fitted(
        self,
        values: Tensor,
        offsets: Tensor,
        slots: Tensor,
        counts: Tensor | None = None,
    ) -> Tensor:
        """Fit all weights; if the competition would exceed 1, fix it there and fit the others."""
        scales = torch.ones_like(self.prior)
        scales[self.place(COMPETITION)] = COMPETITION_SCALE
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
        if weights[self.place(COMPETITION)] <= 1:
            return weights
        # the competition is the last weight: its feature becomes a part of the offsets
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
    table: PairTable, source: SideLogits, target: SideLogits
) -> tuple[Tensor, Tensor]:
    """Return the probability of any match from both sides."""
    forth = torch.where(table.filled, source.pairs, OUT_OF_THE_QUESTION)
    back = torch.where(table.filled, target.pairs, OUT_OF_THE_QUESTION)
    # the log weight of all options of an entity, no match included
    options = torch.cat([forth, source.none.unsqueeze(1)], dim=1)
    of_source = torch.logsumexp(options, dim=1)
    of_target = table.logsumexp_by_target(back, target.none)
    return -torch.expm1(source.none - of_source), -torch.expm1(target.none - of_target)


def _similarity_odds(features: PairFeatures) -> Tensor:
    """Return each pair's mean of both sides' log odds against the non-candidates."""
    (forth, back), (of_source, of_target) = features.log_probs, features.log_rest
    odds = forth - of_source.unsqueeze(1) + back - of_target[features.table.targets]
    return odds / 2
