"""Both EM steps as in the paper: rule weights (M-step), then q* and new labels (E-step)."""

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.em.joint import JointStep, links_on
from emea.em.m_step import fit_weights, link_examples
from emea.em.reports import JointReport, NeuralBeliefs
from emea.em.settings import PaperSettings
from emea.matching.beliefs import Beliefs
from emea.matching.similarity import Similarity
from emea.rules.rule import Rule, RuleView, rule_values

logger = logging.getLogger(__name__)


def conditional(values: Tensor, weights: Tensor) -> Tensor:
    """Return ``p(y_e = e' | y_-e)`` over the candidates of each entity (Eq. 7).

    The local compatibility of Eq. 4 is ``exp(sum_k phi_k g_k + phi_0)``; phi_0 is the same for
    every candidate and cancels.

    Args:
        values: ``[num_source, k, num_rules]`` indicator values of each candidate.
        weights: ``[num_rules]`` phi.

    Returns:
        ``[num_source, k]`` probabilities, each row summing to 1.
    """
    return torch.softmax(values @ weights.to(values), dim=1)


def compatible_beliefs(
    beliefs: Beliefs, values: Tensor, weights: Tensor, labels: Tensor
) -> Beliefs:
    """Return q* after one block update of all entities (Eq. 12); labelled entities stay certain.

    Args:
        beliefs: q, whose candidates q* keeps.
        values: ``[num_source, k, num_rules]`` indicator values under q.
        weights: ``[num_rules]`` phi.
        labels: ``[num_labels, 2]`` links of the labelled entities.
    """
    free = Beliefs(targets=beliefs.targets, probs=conditional(values, weights))
    return free.clamped(labels)


class PaperStep(JointStep):
    """Runs the paper's M-step (Eq. 13) and E-step (Eq. 12), and labels all entities.

    The E-step is one block update of q* from the source side.

    Args:
        rule: Measures compatibility; any rule can be used.
        settings: Settings of EM.
    """

    def __init__(self, rule: Rule, settings: PaperSettings) -> None:
        self.rule = rule
        self.settings = settings
        self.weights = torch.zeros(0, dtype=torch.float64)

    def certain_links(self, visible: Visible) -> IntArray:
        """Return the training links, and the unseen links on which rule weights are fitted."""
        unseen = self._unseen_links(visible)
        return (
            visible.train if unseen is None else np.concatenate([visible.train, unseen])
        )

    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        """Fit the rule weights, and derive q* and the pseudo-labels."""
        beliefs = neural.beliefs
        given = visible.relation_links
        links = None if given is None else links_on(given, beliefs.targets.device)
        self.rule.prepare(RuleView(beliefs, neural.embeddings, links))
        values = rule_values(self.rule, beliefs)
        if neural.iteration == 0:
            self._warn_without_support(values)
        self.weights = self._fit_weights(neural, values, visible)
        train = links_on(visible.train, values.device)
        compatible = compatible_beliefs(beliefs, values, self.weights, train)
        best = beliefs.best_slots()
        rows = torch.arange(len(best), device=best.device)
        return JointReport(
            beliefs=compatible,
            labels=self._labels(compatible, visible),
            weights=dict(zip(self.rule.names, self.weights.tolist(), strict=True)),
            compatibility=values[rows, best].mean(1),
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the weights."""
        return {"weights": self.weights.cpu()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self.weights = state["weights"]

    def _unseen_links(self, visible: Visible) -> IntArray | None:
        return visible.unseen_links if self.rule.fits_on_unseen_links else None

    def _warn_without_support(self, values: Tensor) -> None:
        speaks = dict(
            zip(self.rule.names, values.flatten(0, 1).any(0).tolist(), strict=True)
        )
        silent = [name for name in speaks if not speaks[name]]
        if silent:
            logger.warning(
                "No candidate has support from rule %s: the graphs share no structure near the "
                "labels. The pseudo-labels follow only the neural model and the other rules.",
                ", ".join(silent),
            )

    def _fit_weights(
        self, neural: NeuralBeliefs, values: Tensor, visible: Visible
    ) -> Tensor:
        if self.settings.m_step == "links":
            unseen = self._unseen_links(visible)
            links = links_on(
                visible.weight_links if unseen is None else unseen, values.device
            )
            # use only the neural model's own candidates: inserted labels are not examples
            rows, slots = link_examples(neural.offered, links)
        else:
            # Eq. 13 with the most probable candidates as the single sample of the paper
            slots = neural.beliefs.best_slots()
            rows = torch.arange(len(slots), device=values.device)
        return fit_weights(values[rows], slots, self.settings.ridge)

    def _labels(self, compatible: Beliefs, visible: Visible) -> IntArray:
        """Return the pseudo-labels that q* gives to the unlabelled entities."""
        targets = compatible.best_targets().cpu().numpy()
        pool = visible.label_pool
        pool = np.arange(compatible.num_source) if pool is None else pool
        unlabelled = np.setdiff1d(pool, visible.train[:, 0])
        return np.stack([unlabelled, targets[unlabelled]], axis=1)
