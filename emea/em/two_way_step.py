"""The two-way step, which replaces the EM steps of the paper; its parts can be switched off."""

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.em.earlier_fits import calibrated
from emea.em.joint import JointStep, links_on
from emea.em.match_model import BeliefModel, MatchModel, OneToOneModel
from emea.em.propagation import Propagation
from emea.em.reports import JointReport, NeuralBeliefs
from emea.em.settings import TwoWaySettings
from emea.em.two_way import TwoWay, TwoWayBeliefs
from emea.errors import ConfigError
from emea.matching.beliefs import Beliefs, Matching
from emea.matching.similarity import Similarity
from emea.rules.rule import Rule

TINY = 1e-12
"""Prevents a division by zero for entities without any belief."""

LIKELY = 0.5
"""Entities with a smaller probability of a counterpart get no pseudo-label."""


class TwoWayStep(JointStep):
    """Updates the beliefs of both sides several times and derives the pseudo-labels from them.

    Args:
        rule: A rule that has evidence for pairs (PARIS).
        num_candidates: Candidates per entity from the encoder.
        settings: The settings under ``em.two_way``.

    Attributes:
        settings: The settings.
        model: Computes beliefs from the features of pairs.
        two_way: Computes the beliefs of both sides.
    """

    def __init__(
        self,
        rule: Rule,
        num_candidates: int,
        settings: TwoWaySettings = TwoWaySettings(),
    ) -> None:
        self.settings = chosen = settings
        evidence = rule.pair_evidence(chosen.features, chosen.matched_inclusions)
        if evidence is None:
            raise ConfigError(
                "The two-way step uses the evidence of PARIS and needs rule=paris, "
                f"got {type(rule).__name__}."
            )
        if chosen.one_to_one and not (chosen.both_directions and chosen.unmatched):
            raise ConfigError(
                "em.two_way.one_to_one needs em.two_way.both_directions=true and "
                "em.two_way.unmatched=true."
            )
        self.uses_search = not chosen.one_to_one
        self.model: BeliefModel = (
            OneToOneModel(chosen) if chosen.one_to_one else MatchModel(chosen)
        )
        propagation = Propagation(
            evidence.source, evidence.target, literals=evidence.literals
        )
        self.two_way = TwoWay(evidence, self.model, propagation, chosen, num_candidates)

    def __call__(
        self,
        similarity: Similarity,
        visible: Visible,
        neural: NeuralBeliefs | None = None,
    ) -> JointReport:
        """Compute the beliefs from an encoder's similarity.

        Args:
            similarity: Similarity of the encoder.
            visible: All links that may be used.
            neural: The neural model's beliefs; their search is reused.
        """
        device = similarity.source.device
        train = links_on(visible.train, device)
        validation = links_on(visible.validation, device)
        searched = None if neural is None else neural.searched
        rejected = (
            None if visible.rejected is None else links_on(visible.rejected, device)
        )
        local = None if neural is None else neural.local
        settled = self.two_way(
            similarity,
            train,
            validation,
            searched=searched,
            rejected=rejected,
            local=local,
        )
        labels, weights = self._labels(settled, visible)
        share = 1.0 if settled.shares is None else settled.shares[0].value
        return JointReport(
            beliefs=calibrated(_as_beliefs(settled), validation, share=share).clamped(
                train
            ),
            labels=labels,
            weights=dict(
                zip(self.model.names, self.model.weights.tolist(), strict=True)
            ),
            compatibility=_compatibility(settled),
            label_weights=weights if self.settings.weighted_labels else None,
            ranking=settled.ranking,
            is_answer=self.settings.fused_answer,
            details={"sweeps": settled.num_updates, "change": settled.change},
            recomputed=settled.recomputed,
            shares=settled.shares,
        )

    def start_from(self, known: Matching) -> bool:
        """Let the first call start from the matches of an earlier run."""
        self.two_way.start = known
        return True

    def _labels(
        self, settled: TwoWayBeliefs, visible: Visible
    ) -> tuple[IntArray, Tensor]:
        """Return the pseudo-labels of the unlabelled entities, and their beliefs."""
        if self.settings.mutual_labels:
            matching = settled.mutual()
            pairs = matching.pairs()
            probs = matching.probs[matching.sources]
        else:
            best = settled.belief.max(1)
            known = (best.values > -torch.inf).nonzero().squeeze(1)
            targets = settled.table.targets.gather(
                1, best.indices.unsqueeze(1)
            ).squeeze(1)
            pairs = torch.stack([known, targets[known]], dim=1)
            probs = best.values[known].exp()
        pairs = pairs.cpu()
        probs = probs.float().cpu()
        free = ~np.isin(pairs[:, 0].numpy(), visible.train[:, 0])
        if settled.shares is not None:
            matched = settled.from_source.exp().sum(1).cpu() >= LIKELY
            free &= matched[pairs[:, 0]].numpy()
        if visible.label_pool is not None:
            free &= np.isin(pairs[:, 0].numpy(), visible.label_pool)
        return pairs.numpy()[free], probs[torch.from_numpy(free)]


def _compatibility(settled: TwoWayBeliefs) -> Tensor:
    """Return the noisy-or of the encoder's best candidate, ``[num_source]``."""
    table = settled.table
    nearest = torch.where(table.filled, table.scores, -torch.inf).argmax(
        1, keepdim=True
    )
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
