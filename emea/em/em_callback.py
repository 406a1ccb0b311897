"""The Lightning callback that runs the M-step and the E-step after each fit."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from emea.config.settings.em import PaperEMSettings
from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.em.joint import JointStep, links_on
from emea.em.normaliser import Normaliser
from emea.em.reports import IterationReport, JointReport, NeuralBeliefs
from emea.evaluation.joint_ranks import fused_ranks, joint_ranks
from emea.evaluation.ranks import Ranks, link_ranks, ranking_metrics
from emea.fit.alignment_module import AlignmentModule
from emea.fit.step_block import LabelDataModule
from emea.fit.training_parts import BetweenFits
from emea.matching.candidates import search_recall, warn_of_low_recall
from emea.matching.similarity import Decoder, Similarity

RECALL_SAMPLE = 1000
"""Source entities on which an approximate search is compared with an exact one."""

SEARCH, REASONING, EVALUATION = "search", "reasoning", "evaluation"
"""Phases between two fits."""

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
    """

    visible: Visible
    decoder: Decoder
    normaliser: Normaliser
    step: JointStep
    observer: Observer
    settings: PaperEMSettings
    on_phase: Callable[[str], None] = lambda phase: None
    iteration: int = 0

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Run both EM steps and set the labels of the next fit.

        Lightning calls ``on_fit_end`` only after it has moved the model off the device.
        """
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        assert isinstance(pl_module, AlignmentModule) and isinstance(data, LabelDataModule)
        if pl_module.is_last_member:
            self.between_fits(pl_module, data)

    def between_fits(self, module: AlignmentModule, data: LabelDataModule) -> None:
        """Search candidates, run the joint step, set new labels and call the observer."""
        self.on_phase(SEARCH)
        start = time.perf_counter()
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
    def certain(self) -> IntArray:
        """``[num_links, 2]`` links that have probability 1 in q."""
        return self.step.certain_links(self.visible)

    def state_dict(self) -> dict[str, Any]:
        """Return everything the next iteration depends on, as plain values and tensors."""
        return {
            **self.step.state_dict(),
            "iteration": self.iteration,
            "normaliser": self.normaliser.parameters(),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self.iteration = int(state_dict["iteration"])
        self.normaliser.restore(dict(state_dict["normaliser"]))
        self.step.load_state_dict(state_dict)

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
            ranks = fused_ranks(neural, similarity, joint.ranking, links, links[:, 1])
        return ranking_metrics(ranks.in_all)

    def _normalised(self, similarity: Similarity, source: Tensor) -> NeuralBeliefs:
        """Return q of the neural model, and its search if the joint step uses it."""
        if not self.visible.is_crossed:  # each encoder was trained on some of these links
            self.normaliser.fit(similarity, links_on(self.visible.normaliser_links, source.device))
        offered, searched = self.step.search(
            similarity, self.normaliser, self.settings.num_candidates
        )
        beliefs = offered.clamped(links_on(self.certain, source.device))
        return NeuralBeliefs(source, offered, beliefs, searched, iteration=self.iteration)

    def _joint(
        self, similarity: Similarity, neural: NeuralBeliefs, data: LabelDataModule
    ) -> JointReport:
        """Run the joint step and set the labels of the next fit."""
        self.on_phase(REASONING)
        joint = self.step(similarity, self.visible, neural)
        if not joint.members:
            data.relabel([self._labels(joint, self.visible)])
            return joint
        views = self.visible.of_members(len(joint.members))
        data.relabel(list(map(self._labels, joint.members, views)))
        return replace(joint, members=())  # an observer may keep the report

    def _labels(self, joint: JointReport, visible: Visible) -> tuple[IntArray, Tensor | None]:
        """Return the links of the next fit and their weights."""
        train, weights = visible.encoder_links, joint.label_weights
        if weights is not None:
            weights = torch.cat([weights.new_ones(len(train)), weights])
        return np.concatenate([train, joint.labels]), weights


def _clock(tensor: Tensor) -> float:
    """Return the wall clock time after all work on the device has finished."""
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
    return time.perf_counter()
