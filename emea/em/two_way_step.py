"""The two-way step, which replaces the EM steps of the paper; its parts can be switched off."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.config.settings.em import TwoWaySettings
from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.em.joint import JointStep, links_on
from emea.em.m_step import fit_weights
from emea.em.match_model import MatchModel, OneToOneModel
from emea.em.propagation import Propagation
from emea.em.reports import JointReport, NeuralBeliefs
from emea.em.two_way import TwoWay, TwoWayBeliefs
from emea.errors import ConfigError
from emea.matching.beliefs import Beliefs, Matching
from emea.matching.similarity import Similarity
from emea.rules.rule import Rule

TINY = 1e-12
"""Prevents a division by zero for entities without any belief."""

MARGIN = 1e-6
"""Smallest distance of a probability from 0 and 1, so that its logit is finite."""

STATE = "two_way."
"""Prefix of the names of the step's state in a checkpoint."""


class TwoWayStep(JointStep):
    """Updates the beliefs of both sides several times and derives the pseudo-labels from them.

    Args:
        rule: A rule that has evidence for pairs (PARIS).
        num_candidates: Candidates per entity from the encoder.
        settings: Fields of :class:`~emea.config.settings.em.TwoWaySettings`.

    Attributes:
        settings: The settings.
        model: Computes beliefs from the features of pairs.
        two_way: Computes the beliefs of both sides.
    """

    def __init__(self, rule: Rule, num_candidates: int, **settings: Any) -> None:
        self.settings = chosen = TwoWaySettings(**settings)
        evidence = rule.pair_evidence(
            of_matched=chosen.matched_inclusions,
            rare_coverage="rare_coverage" in chosen.features,
            relation_overlap="relation_overlap" in chosen.features,
        )
        if evidence is None:
            raise ConfigError(
                "em=dual reasons with the evidence of PARIS: it needs rule=paris, "
                f"got {type(rule).__name__}."
            )
        if chosen.one_to_one and not (chosen.both_directions and chosen.unmatched):
            raise ConfigError(
                "em.two_way.one_to_one needs em.two_way.both_directions=true and "
                "em.two_way.unmatched=true."
            )
        self.uses_search = not chosen.one_to_one
        self.model = OneToOneModel(chosen) if chosen.one_to_one else MatchModel(chosen)
        propagation = Propagation(evidence.source, evidence.target, literals=evidence.literals)
        self.two_way = TwoWay(evidence, self.model, propagation, chosen, num_candidates)

    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs | None = None
    ) -> JointReport:
        """Compute the beliefs from an encoder's similarity.

        Args:
            similarity: Similarity of the encoder.
            visible: All links that may be used.
            neural: The neural model's beliefs; their search is reused.
        """
        device = similarity.source.device
        train, validation = links_on(visible.train, device), links_on(visible.validation, device)
        searched = None if neural is None else neural.searched
        rejected = None if visible.rejected is None else links_on(visible.rejected, device)
        local = None if neural is None else neural.local
        settled = self.two_way(similarity, train, validation, searched, rejected, local)
        labels, weights = self._labels(settled, visible)
        return JointReport(
            beliefs=calibrated(_as_beliefs(settled), validation).clamped(train),
            labels=labels,
            weights=dict(zip(self.model.names, self.model.weights.tolist(), strict=True)),
            compatibility=_compatibility(settled),
            label_weights=weights if self.settings.weighted_labels else None,
            ranking=settled.ranking,
            is_answer=self.settings.fused_answer,
            details={"sweeps": settled.num_updates, "change": settled.change},
            recomputed=settled.recomputed,
        )

    def start_from(self, known: Matching) -> bool:
        """Let the first call start from the matches of an earlier run."""
        self.two_way.start = known
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return the running mean of similarities."""
        held = self.two_way.past.state_dict()
        return {f"{STATE}{name}": value.cpu() for name, value in held.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        named = {name: value for name, value in state.items() if name.startswith(STATE)}
        self.two_way.past.load_state_dict(
            {name.removeprefix(STATE): value for name, value in named.items()}
        )

    def _labels(self, settled: TwoWayBeliefs, visible: Visible) -> tuple[IntArray, Tensor]:
        """Return the pseudo-labels of the unlabelled entities, and their beliefs."""
        if self.settings.mutual_labels:
            matching = settled.mutual()
            pairs, probs = matching.pairs(), matching.probs[matching.sources]
        else:
            best = settled.belief.max(1)
            known = (best.values > -torch.inf).nonzero().squeeze(1)
            targets = settled.table.targets.gather(1, best.indices.unsqueeze(1)).squeeze(1)
            pairs, probs = torch.stack([known, targets[known]], dim=1), best.values[known].exp()
        pairs, probs = pairs.cpu(), probs.float().cpu()
        free = ~np.isin(pairs[:, 0].numpy(), visible.train[:, 0])
        if visible.label_pool is not None:
            free &= np.isin(pairs[:, 0].numpy(), visible.label_pool)
        if visible.label_targets is not None:
            free &= np.isin(pairs[:, 1].numpy(), visible.label_targets)
        return pairs.numpy()[free], probs[torch.from_numpy(free)]


def _compatibility(settled: TwoWayBeliefs) -> Tensor:
    """Return the noisy-or of the encoder's best candidate, ``[num_source]``."""
    table = settled.table
    nearest = torch.where(table.filled, table.scores, -torch.inf).argmax(1, keepdim=True)
    return -torch.expm1(settled.evidence.log_doubt.gather(1, nearest).squeeze(1))


def _as_beliefs(settled: TwoWayBeliefs) -> Beliefs:
    """Return the candidates by belief, best first, with their share of an entity's beliefs.

    The option to match none of the candidates has a share, too. Empty slots come last and have
    probability 0.
    """
    order = torch.argsort(settled.belief, dim=1, descending=True, stable=True)
    none = 1 - settled.from_source.exp().sum(1, keepdim=True)
    beliefs = settled.belief.exp()
    shares = beliefs / (beliefs.sum(1, keepdim=True) + none.clamp(min=TINY))
    return Beliefs(settled.table.targets.gather(1, order), shares.gather(1, order))


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
