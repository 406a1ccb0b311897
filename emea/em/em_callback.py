"""The Lightning callback that runs the M-step and the E-step after each fit."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.em.best_iteration import BestIteration
from emea.em.joint import JointStep, links_on
from emea.em.normaliser import Normaliser
from emea.em.reports import IterationReport, JointReport, NeuralBeliefs
from emea.em.settings import PaperSettings
from emea.evaluation.joint_ranks import fused_ranks, joint_ranks
from emea.evaluation.ranks import Ranks, link_ranks, ranking_metrics
from emea.fit.alignment_module import AlignmentModule
from emea.fit.step_block import LabelDataModule
from emea.fit.training_parts import BetweenFits
from emea.matching.candidates import search_recall, warn_of_low_recall
from emea.matching.similarity import Decoder, Similarity

logger = logging.getLogger(__name__)

RECALL_SAMPLE = 1000
"""Source entities on which an approximate search is compared with an exact one."""

SEARCH, REASONING, EVALUATION = "search", "reasoning", "evaluation"
"""Phases between two fits."""

MODULE = "module."
"""Beginning of the names of weights in the state of an iteration."""

Observer = Callable[[IterationReport], None]


@dataclass(eq=False, kw_only=True)
class EMCallback(BetweenFits):
    """Runs variational EM between the fits of the neural model.

    After each fit, the callback computes q from the similarity (Eq. 1-3), runs the joint step,
    which contains the M-step and the E-step, and sets the labels of the next fit.

    Args:
        visible: All links that the callback may use.
        decoder: Computes the similarity from embeddings.
        normaliser: Computes q from the similarity.
        step: Runs the M-step and the E-step. If it does not reason, the labels do not change and
            the callback only reports on the neural model.
        observer: Called with the state after each fit.
        settings: Settings of EM.
        on_phase: Called with the name of each phase that starts, for a progress display.
        iteration: Number of times that it has run.
        best: The best iteration so far by the validation links.
        label_change: Share of the pseudo-labels that the last iteration changed.
    """

    visible: Visible
    decoder: Decoder
    normaliser: Normaliser
    step: JointStep
    observer: Observer
    settings: PaperSettings
    on_phase: Callable[[str], None] = lambda phase: None
    iteration: int = 0
    best: BestIteration = field(default_factory=BestIteration)
    label_change: float = 1.0

    def on_training_end(self, module: AlignmentModule, data: LabelDataModule) -> None:
        """Run both EM steps and set the labels of the next fit."""
        if module.is_last_member:
            self.between_fits(module, data)

    def between_fits(self, module: AlignmentModule, data: LabelDataModule) -> None:
        """Search candidates, run the joint step, set new labels and call the observer."""
        self.on_phase(SEARCH)
        start = time.perf_counter()
        before = self._state_to_repeat(module) if self.best.keeps else {}
        source, target = self.step.embeddings(module, self.visible)
        similarity = self.decoder(source, target)
        neural = self._normalised(similarity, source)
        recall = None
        if similarity.scope is not None and self.step.searches_all:
            recall = search_recall(similarity, neural.offered.targets, RECALL_SAMPLE)
            warn_of_low_recall(recall)
        ranks = link_ranks(similarity, self.visible.held_out)
        validation = ranking_metrics(ranks.in_all)
        searched = _clock(source)
        joint = self._joint(similarity, neural, data) if self.step.reasons else None
        seconds = {"search": searched - start, "joint": _clock(source) - searched}
        of_answer = self._answer_validation(similarity, joint, ranks)
        self.best.follow(self.iteration, (of_answer or validation)["mrr"], before)
        report = IterationReport(
            self.iteration,
            similarity,
            neural.beliefs,
            self.normaliser.parameters(),
            joint,
            validation,
            of_answer,
            recall,
            seconds,
        )
        self.iteration += 1
        self.on_phase(EVALUATION)
        self.observer(report)

    @property
    def phases(self) -> tuple[str, ...]:
        """The names of the phases after each fit, in order."""
        return (
            (SEARCH, REASONING, EVALUATION)
            if self.step.reasons
            else (SEARCH, EVALUATION)
        )

    @property
    def reason_to_stop(self) -> str | None:
        """Why ``em.patience`` or ``em.tolerance`` ends EM; ``None`` if they do not."""
        if self.best.has_stopped_rising:
            return "the MRR on the validation links stopped rising"
        if self.label_change <= self.settings.tolerance:
            return (
                f"the last iteration changed {self.label_change:.1%} of the pseudo-labels "
                f"(em.tolerance={self.settings.tolerance:g})"
            )
        return None

    def return_to_best(self, module: AlignmentModule, data: LabelDataModule) -> None:
        """Compute the best iteration again if the run answers with it and it is not the last."""
        best = self.best
        if not best.keeps or best.iteration in (None, self.iteration - 1):
            return
        logger.info(
            "Answering with iteration %d, which has the best MRR on the validation links: %.4f",
            best.iteration,
            best.mrr,
        )
        state = dict(best.state)
        weights = {
            name: value for name, value in state.items() if name.startswith(MODULE)
        }
        module.load_state_dict(
            {name.removeprefix(MODULE): weights[name] for name in weights}
        )
        own = {name: value for name, value in state.items() if name not in weights}
        self._load_own_state(own)
        self.between_fits(module, data)

    @property
    def certain(self) -> IntArray:
        """``[num_links, 2]`` links that have probability 1 in q."""
        return self.step.certain_links(self.visible)

    def state_dict(self) -> dict[str, Any]:
        """Return everything the next iteration depends on, as plain values and tensors."""
        return {**self._own_state(), **self.best.state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self._load_own_state(state_dict)
        self.best.load_state_dict(state_dict)

    def _own_state(self) -> dict[str, Any]:
        """Return the state of EM without that of the best iteration."""
        return {
            **self.step.state_dict(),
            "iteration": self.iteration,
            "normaliser": self.normaliser.parameters(),
        }

    def _load_own_state(self, state_dict: Mapping[str, Any]) -> None:
        self.iteration = int(state_dict["iteration"])
        self.normaliser.restore(dict(state_dict["normaliser"]))
        self.step.load_state_dict(state_dict)

    def _state_to_repeat(self, module: AlignmentModule) -> dict[str, Any]:
        """Return copies of the weights and of the state of EM before an iteration."""
        state = {
            f"{MODULE}{name}": value for name, value in module.state_dict().items()
        }
        state |= self._own_state()
        return {
            name: value.detach().clone() if isinstance(value, Tensor) else value
            for name, value in state.items()
        }

    def _answer_validation(
        self, similarity: Similarity, joint: JointReport | None, neural: Ranks
    ) -> dict[str, float] | None:
        """Return the joint ranking's validation metrics if the run answers with that ranking."""
        links = self.visible.held_out
        if joint is None or not joint.is_answer or not len(links):
            return None
        if joint.ranking is None:
            ranks = joint_ranks(neural, similarity, joint.beliefs, links, links[:, 1])
        else:
            ranks = fused_ranks(
                neural, similarity, joint.ranking, links, pool=links[:, 1]
            )
        return ranking_metrics(ranks.in_all)

    def _normalised(self, similarity: Similarity, source: Tensor) -> NeuralBeliefs:
        """Return q of the neural model, and its search if the joint step uses it."""
        if (
            not self.visible.is_crossed
        ):  # each encoder was trained on some of these links
            self.normaliser.fit(
                similarity, links_on(self.visible.normaliser_links, source.device)
            )
        offered, searched = self.step.search(
            similarity, self.normaliser, self.settings.num_candidates
        )
        beliefs = offered.clamped(links_on(self.certain, source.device))
        return NeuralBeliefs(
            source, offered, beliefs, searched, iteration=self.iteration
        )

    def _joint(
        self, similarity: Similarity, neural: NeuralBeliefs, data: LabelDataModule
    ) -> JointReport:
        """Run the joint step and set the labels of the next fit."""
        self.on_phase(REASONING)
        joint = self.step(similarity, self.visible, neural)
        if not joint.members:
            num_given = len(self.visible.encoder_links)
            before = data.labels[num_given:]
            data.relabel([self._labels(joint, self.visible)])
            self.label_change = share_changed(before, joint.labels)
            details = {**joint.details, "label_change": self.label_change}
            return replace(joint, details=details)
        views = self.visible.of_members(len(joint.members))
        data.relabel(list(map(self._labels, joint.members, views)))
        return replace(joint, members=())  # an observer may keep the report

    def _labels(
        self, joint: JointReport, visible: Visible
    ) -> tuple[IntArray, Tensor | None]:
        """Return the links of the next fit and their weights."""
        train = visible.encoder_links
        weights = joint.label_weights
        if weights is not None:
            weights = torch.cat([weights.new_ones(len(train)), weights])
        return np.concatenate([train, joint.labels]), weights


def share_changed(before: IntArray, after: IntArray) -> float:
    """Return the share of labelled source entities whose label is new, other or gone.

    Args:
        before: ``[num_labels, 2]`` former labels, one of each source entity.
        after: ``[num_labels, 2]`` new labels, likewise.
    """
    labelled = np.union1d(before[:, 0], after[:, 0])
    width = 1 + max(before.max(initial=0), after.max(initial=0))
    former = before[:, 0] * width + before[:, 1]
    kept = np.isin(after[:, 0] * width + after[:, 1], former)
    return float(1 - kept.sum() / max(1, len(labelled)))


def _clock(tensor: Tensor) -> float:
    """Return the wall clock time after all work on the device has finished."""
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
    return time.perf_counter()
