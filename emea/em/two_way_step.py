"""The EM steps of ``em=dual``; each of their parts can be switched off."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.config.settings.em import FEATURES, PAPER_FEATURES
from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.em.joint import JointReport, JointStep, NeuralBeliefs, links_on
from emea.em.match_model import MatchModel, calibrated
from emea.em.one_to_one import OneToOneModel
from emea.em.propagation import Propagation
from emea.em.two_way import TwoWay, TwoWayBeliefs
from emea.errors import ConfigError
from emea.matching.beliefs import Beliefs, Matching
from emea.matching.pair_table import PairRanking
from emea.matching.similarity import Similarity
from emea.rules.rule import Rule

TINY = 1e-12
"""Prevents a division by zero for entities without any belief."""

STATE = "two_way."
"""Prefix of the names of the step's state in a checkpoint."""


class TwoWayStep(JointStep):
    """Updates the beliefs of both sides several times and derives the pseudo-labels from them.

    Args:
        rule: A rule that has evidence for pairs (PARIS); ``None`` switches EM off.
        num_candidates: Candidates per entity from the encoder.
        both_directions: Search candidates and normalise beliefs from both sides.
        sweeps: Largest number of belief updates per round.
        tolerance: Mean change of an entity's beliefs at which the updates end.
        propagation: Largest number of rounds with candidates that confident neighbours imply;
            0 switches them off.
        max_candidates: Largest number of pairs per source entity.
        features: Features of a pair: similarity, noisy_or, evidence, coverage, rare_coverage,
            relation_overlap.
        unmatched: Whether an entity may match none of its candidates.
        matched_inclusions: Estimate inclusions of relations from triples whose ends are matched;
            if false, from all triples.
        ridge: Strength of the prior on the weights of the features.
        memory: Share of the running mean over earlier iterations in the similarity of a pair;
            0 switches it off.
        mutual_labels: Pseudo-labels are pairs in which each entity is the other's best candidate;
            if false, the best candidate of each entity.
        weighted_labels: Weight pseudo-labels in training by their belief.
        fused_answer: Answer with the fused ranking; if false, with the neural model's.
        one_to_one: Beliefs are marginals of a distribution over one-to-one matchings, and
            labelled entities do not compete with the others.

    Attributes:
        is_off: Whether all parts are off; the paper's step is then used instead.
    """

    uses_search = True

    def __init__(
        self,
        rule: Rule | None,
        num_candidates: int = 10,
        both_directions: bool = True,
        sweeps: int = 2,
        tolerance: float = 0.002,
        propagation: int = 5,
        max_candidates: int = 30,
        features: Sequence[str] = FEATURES,
        unmatched: bool = True,
        matched_inclusions: bool = True,
        ridge: float = 0.01,
        memory: float = 0.0,
        mutual_labels: bool = True,
        weighted_labels: bool = True,
        fused_answer: bool = True,
        one_to_one: bool = False,
    ) -> None:
        self.mutual_labels = mutual_labels
        self.weighted_labels = weighted_labels
        self.fused_answer = fused_answer
        parts = [both_directions, sweeps > 1, propagation > 0, unmatched, matched_inclusions]
        parts += [mutual_labels, weighted_labels, fused_answer, tuple(features) != PAPER_FEATURES]
        parts += [memory > 0, one_to_one]
        self.is_off = rule is None or not any(parts)
        if self.is_off:
            return
        assert rule is not None
        evidence = rule.pair_evidence(
            of_matched=matched_inclusions,
            rare_coverage="rare_coverage" in features,
            relation_overlap="relation_overlap" in features,
        )
        if evidence is None:
            raise ConfigError(
                "em=dual reasons with the evidence of PARIS: it needs rule=paris, "
                f"got {type(rule).__name__}."
            )
        if one_to_one and not (both_directions and unmatched):
            raise ConfigError(
                "em.two_way.one_to_one needs em.two_way.both_directions=true and "
                "em.two_way.unmatched=true."
            )
        self.uses_search = not one_to_one
        self.model = (
            OneToOneModel(features, ridge)
            if one_to_one
            else MatchModel(features, unmatched, both_directions, ridge)
        )
        self.two_way = TwoWay(
            evidence,
            self.model,
            Propagation(evidence.source, evidence.target, literals=evidence.literals),
            num_candidates=num_candidates,
            max_candidates=max_candidates,
            max_updates=sweeps,
            tolerance=tolerance,
            rounds=propagation,
            past_share=memory,
            one_to_one=one_to_one,
        )

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
            label_weights=weights if self.weighted_labels else None,
            ranking=PairRanking(settled.table, settled.belief),
            is_answer=self.fused_answer,
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
        if self.mutual_labels:
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
