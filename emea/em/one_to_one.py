"""The match model of the two-way step with one-to-one inference."""

from collections.abc import Sequence

import torch
from torch import Tensor

from emea.config.settings.em import FEATURES
from emea.em.examples import Examples, stacked_examples
from emea.em.m_step import fit_weights
from emea.em.match_model import PRIORS, UNMATCHED, UNMATCHED_PRIOR, MatchModel, PairFeatures
from emea.matching.matching_marginals import MatchingMessages, log_marginals, matching_messages
from emea.matching.pair_table import PairTable

COMPETITION, COMPETITION_PRIOR = "competition", 1.0
"""The messages of the other side's entities, and their weight before any link is seen."""

COMPETITION_SCALE = 0.3
"""Standard deviation of the prior of the competition, relative to those of the other weights.

With 100 links, the likelihood determines this weight badly, and a small weight harms the labels.
"""

NUM_FITS = 2
"""Fits of the weights in an update; messages are computed before each of them."""


class OneToOneModel(MatchModel):
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
        features: Names of the features.
        ridge: Strength of the prior on the weights.
    """

    def __init__(self, features: Sequence[str] = FEATURES, ridge: float = 0.01) -> None:
        super().__init__(features, unmatched=True, both=True, ridge=ridge)
        self.names = [*self.names, COMPETITION]
        priors = {**PRIORS, UNMATCHED: UNMATCHED_PRIOR, COMPETITION: COMPETITION_PRIOR}
        self.prior = torch.tensor([priors[name] for name in self.names])
        self.weights = self.prior.double()
        self._last: tuple[PairTable, MatchingMessages] | None = None

    def fit(self, features: PairFeatures, examples: Sequence[Examples]) -> None:
        """Fit the weights on the examples of links that the encoder has not been trained on."""
        self.weights, self._last = self.prior.double(), None
        if not len(examples[0].ids):
            return
        columns = self._columns(features)
        for _ in range(NUM_FITS):
            messages = self._messages(features.table, self._potentials(columns))
            received = messages.from_target, messages.from_source
            given = [
                _example_values([*columns, of_others], part)
                for of_others, part in zip(received, examples, strict=True)
            ]
            self.weights = self._fitted(*stacked_examples(given))

    def beliefs(self, features: PairFeatures) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log marginal of each pair, ``[num_source, width]``.

        The two sides and their joint belief are equal here, so the same tensor is returned three
        times.
        """
        potentials = self._potentials(self._columns(features))
        messages = self._messages(features.table, potentials)
        belief = log_marginals(features.table, potentials, messages, float(self.weights[-1]))
        return belief, belief, belief

    def encoder_beliefs(self, features: PairFeatures) -> Tensor:
        """Return the log marginals that follow from the encoder's similarity only."""
        odds = _similarity_odds(features)
        return log_marginals(features.table, odds, matching_messages(features.table, odds))

    def _messages(self, table: PairTable, potentials: Tensor) -> MatchingMessages:
        """Return the messages under the current weights, starting from the table's last ones."""
        start = None
        if self._last is not None and self._last[0] is table:
            start = self._last[1]
        messages = matching_messages(table, potentials, float(self.weights[-1]), start=start)
        self._last = table, messages
        return messages

    def _columns(self, features: PairFeatures) -> list[Tensor]:
        """Return each feature, ``[num_source, width]``, in the order of the names."""
        odds = _similarity_odds(features)
        named = {"similarity": odds, UNMATCHED: torch.full_like(odds, -1.0), **features.evidence}
        return [named[name] for name in self.names[:-1]]

    def _potentials(self, columns: list[Tensor]) -> Tensor:
        total = torch.zeros_like(columns[0])
        for column, weight in zip(columns, self.weights.to(total), strict=False):
            total = torch.addcmul(total, column, weight)
        return total

    def _fitted(self, values: Tensor, offsets: Tensor, slots: Tensor) -> Tensor:
        """Fit all weights; if the competition would exceed 1, fix it there and fit the others."""
        least = torch.tensor([-torch.inf if name == UNMATCHED else 0.0 for name in self.names])
        least, prior = least.double(), self.prior.double()
        scales = torch.ones_like(prior)
        scales[-1] = COMPETITION_SCALE
        weights = scales * fit_weights(
            values * scales.to(values),
            slots,
            self.ridge,
            prior / scales,
            least=least,
            offsets=offsets,
        )
        if weights[-1] <= 1:
            return weights
        others = fit_weights(
            values[..., :-1],
            slots,
            self.ridge,
            prior[:-1],
            least=least[:-1],
            offsets=offsets + values[..., -1],
        )
        return torch.cat([others, torch.ones_like(weights[-1:])])


def _similarity_odds(features: PairFeatures) -> Tensor:
    """Return each pair's mean of both sides' log odds against the non-candidates."""
    (forth, back), (of_source, of_target) = features.log_probs, features.log_rest
    odds = forth - of_source.unsqueeze(1) + back - of_target[features.table.targets]
    return odds / 2


def _example_values(columns: list[Tensor], examples: Examples) -> tuple[Tensor, Tensor, Tensor]:
    """Return features, offsets and correct slots of the examples of one side, on the CPU."""
    none = columns[0].new_zeros(len(examples.ids), len(columns))
    return examples.values(columns, none), examples.offsets(0.0), examples.slots_or_none()
