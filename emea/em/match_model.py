"""The match model of the two-way step: features, weights and calibration."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.em.m_step import fit_weights
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import OUT_OF_THE_QUESTION, PairTable, places_in_groups
from emea.settings.em import ALL_FEATURES, FEATURES

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

    def fit(self, features: PairFeatures, links: Tensor) -> None:
        """Fit the weights on links that the encoder has not been trained on."""
        sides = [source_examples(features, links)]
        sides += [target_examples(features, links)] if self.both else []
        examples = [self._example_values(features, side, *part) for side, part in enumerate(sides)]
        values, offsets, slots = stacked_examples(examples)
        known = slots >= 0
        least = torch.tensor([0.0 if name in PRIORS else -torch.inf for name in self.names])
        self.weights = fit_weights(
            values[known],
            slots[known],
            self.ridge,
            prior=self.prior.double(),
            least=least.double(),
            offsets=offsets[known],
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
        self, features: PairFeatures, side: int, places: Tensor, ids: Tensor, slots: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return features, offsets and correct slots of some entities of one side, on the CPU.

        Args:
            features: Features of all pairs.
            side: 0 for source entities, 1 for target entities.
            places: ``[n, k]`` positions of each entity's pairs in the flattened table, -1 for none.
            ids: ``[n]`` the entities.
            slots: ``[n]`` the correct pair of each entity, -1 if it is not in the table.
        """
        named = {"similarity": features.log_probs[side], **features.evidence}
        last = torch.zeros(len(places), 1, len(self.names))
        columns = []
        for index, name in enumerate(self.names):
            if name == UNMATCHED:
                columns.append(torch.zeros(places.shape))
                last[:, 0, index] = 1
                continue
            columns.append(named[name].flatten()[places.clamp(min=0)].cpu())
            if name == "similarity":
                last[:, 0, index] = features.log_rest[side][ids].cpu()
        offsets = torch.where(places.cpu() >= 0, 0.0, -torch.inf)
        none = torch.full((len(places), 1), 0.0 if self.unmatched else -torch.inf)
        values = torch.cat([torch.stack(columns, dim=2), last], dim=1)
        slots = slots.cpu()
        if self.unmatched:
            slots = torch.where(slots < 0, places.shape[1], slots)
        # features of empty slots must be finite; their values do not matter
        values[:, :-1] = torch.where(offsets.unsqueeze(2) == 0, values[:, :-1], 0.0)
        return values, torch.cat([offsets, none], dim=1), slots


def source_examples(features: PairFeatures, links: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return positions of the pairs, ids and correct slots of the links' source entities.

    Positions refer to the flattened table and are -1 for empty slots. The correct slot is -1 if the
    link is not among the pairs.
    """
    table, (sources, targets) = features.table, links.T
    width = table.targets.shape[1]
    places = sources.unsqueeze(1) * width + torch.arange(width, device=links.device)
    filled = table.filled[sources]
    right = (table.targets[sources] == targets.unsqueeze(1)) & filled
    slots = torch.where(right.any(1), right.int().argmax(1), -1)
    return torch.where(filled, places, -1), sources, slots


def target_examples(features: PairFeatures, links: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same as ``source_examples`` for the links' target entities."""
    table, (sources, targets) = features.table, links.T
    wanted = torch.zeros(table.num_target, dtype=torch.bool, device=links.device)
    wanted[targets] = True
    flat = (table.filled & wanted[table.targets]).flatten().nonzero().squeeze(1)
    of_target = table.targets.flatten()[flat]
    order = torch.argsort(of_target, stable=True)
    flat, of_target = flat[order], of_target[order]
    slots = places_in_groups(of_target, table.num_target)
    width = int(slots.max()) + 1 if len(slots) else 1
    # rows for the links' entities only: there may be a million others
    number = wanted.cumsum(0) - 1
    places = torch.full((int(wanted.sum()), width), -1, device=links.device)
    places[number[of_target], slots] = flat
    places = places[number[targets]]
    right = (places // table.targets.shape[1] == sources.unsqueeze(1)) & (places >= 0)
    return places, targets, torch.where(right.any(1), right.int().argmax(1), -1)


def stacked_examples(
    examples: Sequence[tuple[Tensor, Tensor, Tensor]],
) -> tuple[Tensor, Tensor, Tensor]:
    """Concatenate features, offsets and correct slots, padded with empty slots to one width."""
    width = max(values.shape[1] for values, _, _ in examples)
    values = torch.cat([_widened(values, width, 0.0) for values, _, _ in examples])
    offsets = torch.cat([_widened(offset, width, -torch.inf) for _, offset, _ in examples])
    return values, offsets, torch.cat([slots for _, _, slots in examples])


def _widened(values: Tensor, width: int, filler: float) -> Tensor:
    """Return the values, padded with fillers for empty slots to the width."""
    shape = list(values.shape)
    shape[1] = width - shape[1]
    return torch.cat([values, values.new_full(shape, filler)], dim=1)


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
