"""The Lightning callback that runs the M-step and the E-step after each fit."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.em.joint import JointReport, JointStep, NeuralBeliefs, links_on
from emea.em.kept_iteration import PREFIX, kept_report, kept_state
from emea.em.local import LocalUpdate
from emea.em.mean_beliefs import mean_report
from emea.em.member_weights import member_weights
from emea.em.normaliser import Normaliser
from emea.evaluation.joint_ranks import fused_ranks, joint_ranks
from emea.evaluation.ranks import Ranks, link_ranks, ranking_metrics
from emea.fit.alignment_module import AlignmentModule
from emea.fit.step_block import LabelDataModule
from emea.fit.training_parts import BetweenFits
from emea.matching.beliefs import Beliefs
from emea.matching.candidates import search_recall, warn_of_low_recall
from emea.matching.pair_table import PairRanking
from emea.matching.similarity import Decoder, Similarity

RECALL_SAMPLE = 1000
"""Source entities on which an approximate search is compared with an exact one."""

SEARCH, REASONING, EVALUATION = "search", "reasoning", "evaluation"
"""Phases between two fits."""


@dataclass(frozen=True, eq=False)
class IterationReport:
    """Holds the state after one fit and its EM steps, for the observer of a run.

    Args:
        iteration: Number of the iteration; 0 is the model before any EM step.
        similarity: Similarity of the neural model.
        beliefs: q(y_e) of the neural model; labelled entities are certain.
        normaliser: Fitted parameters of the normaliser.
        joint: Report of the joint step; ``None`` without one.
        validation: Metrics of the neural model on the validation links, among all targets.
        answer_validation: The same metrics for the joint ranking; ``None`` if the run does not
            answer with a joint ranking, or if there are no validation links.
        search_recall: Share of the true best candidates that an approximate search found;
            ``None`` if the search was exact.
        seconds: Duration of the candidate search and of the M- and E-step, in seconds.
    """

    iteration: int
    similarity: Similarity
    beliefs: Beliefs
    normaliser: dict[str, float]
    joint: JointReport | None
    validation: dict[str, float]
    answer_validation: dict[str, float] | None
    search_recall: float | None
    seconds: dict[str, float]

    @property
    def answer(self) -> Beliefs:
        """The answer of the run at this point: each entity's candidates with probabilities."""
        if self.joint is None or not self.joint.is_answer:
            return self.beliefs
        return self.joint.beliefs

    @property
    def answer_ranking(self) -> PairRanking | None:
        """The joint ranking, which precedes the neural ranking; ``None`` if there is none."""
        return self.joint.ranking if self.joint is not None and self.joint.is_answer else None


Observer = Callable[[IterationReport], None]


class EMCallback(BetweenFits):
    """Runs variational EM between the fits of the neural model.

    After each fit, the callback computes q from the similarity (Eq. 1-3), runs the joint step,
    which contains the M-step and the E-step, and sets the labels of the next fit.

    Args:
        visible: All links that the callback may use.
        decoder: Computes the similarity from embeddings.
        normaliser: Computes q from the similarity.
        step: Runs the M-step and the E-step. With ``None`` the labels do not change and the
            callback only reports on the neural model.
        observer: Called with the state after each fit.
        num_candidates: Number of candidates per entity (K in the paper).
        patience: The model counts as converged after this many iterations in which the answer's
            MRR on the validation links did not improve. With ``None`` it never does.
        keep: ``last`` answers with the last iteration, ``best`` with the one whose answer has the
            best MRR on the validation links.
        independent: Whether the joint step runs for each member of an ensemble, with its own
            labels, and the run answers with the mean of their beliefs.
        first_shared_fit: From this fit on, independent members train on the same labels, which
            follow from the mean of their beliefs. The first training is fit 0. With ``None``
            they never do.

    Attributes:
        certain: ``[num_links, 2]`` links that have probability 1 in q.
        on_phase: Called with the name of each phase that starts, for a progress display.
        local: Entities to which EM is restricted; ``None`` means all.
    """

    def __init__(
        self,
        visible: Visible,
        decoder: Decoder,
        normaliser: Normaliser,
        step: JointStep | None,
        observer: Observer,
        num_candidates: int = 10,
        patience: int | None = None,
        keep: str = "last",
        independent: bool = False,
        first_shared_fit: int | None = None,
    ) -> None:
        self.independent = independent
        self.first_shared_fit = first_shared_fit
        self.visible = visible
        self.decoder = decoder
        self.normaliser = normaliser
        self.step = step
        self.observer = observer
        self.on_phase: Callable[[str], None] = lambda phase: None
        self.local: LocalUpdate | None = None
        self.certain = visible.train if step is None else step.certain_links(visible)
        self.num_candidates = num_candidates
        self.patience = patience
        self.keep = keep
        self._kept: dict[str, Any] = {}
        self.iteration = 0
        self.best_mrr = -1.0
        self.num_idle = 0

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
        source, target = self._embeddings(module)
        similarity = self.decoder(source, target)
        if self.local is not None:
            self.local = self.local.to(source.device).with_nearest(similarity)
        neural = self._normalised(similarity, source)
        recall = None
        if similarity.scope is not None and self.local is None:
            recall = search_recall(similarity, neural.offered.targets, RECALL_SAMPLE)
            warn_of_low_recall(recall)
        ranks = link_ranks(similarity, self.visible.validation)
        validation = ranking_metrics(ranks.in_all)
        searched = _clock(source)
        joint = None
        if self.step is not None:
            self.on_phase(REASONING)
            if self.independent:
                members = self._member_reports(self.step, module, neural)
                joint = mean_report(members, similarity, self.visible)
                own = self.first_shared_fit is None or self.iteration + 1 < self.first_shared_fit
                data.relabel_members([self._labels(member if own else joint) for member in members])
            else:
                joint = self._joint(self.step, similarity, neural)
                data.relabel(*self._labels(joint))
        seconds = {"search": searched - start, "joint": _clock(source) - searched}
        of_answer = self._answer_validation(similarity, joint, ranks)
        is_best = self._watch((of_answer or validation)["mrr"])
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
        if self.keep == "best" and is_best:
            self._kept = kept_state(report, source, target)
        self.iteration += 1
        self.on_phase(EVALUATION)
        self.observer(report)

    @property
    def phases(self) -> tuple[str, ...]:
        """Return the names of the phases after each fit, in order."""
        return (SEARCH, *(() if self.step is None else (REASONING,)), EVALUATION)

    def kept(self, device: torch.device) -> IterationReport | None:
        """Return the iteration to answer with; ``None`` means the last one."""
        return kept_report(self._kept, self.decoder, device) if self._kept else None

    @property
    def converged(self) -> bool:
        """Whether the MRR on the validation links has not improved for ``patience`` iterations."""
        return self.patience is not None and self.num_idle >= self.patience

    def state_dict(self) -> dict[str, Any]:
        """Return everything the next iteration depends on, as plain values and tensors."""
        return {
            **({} if self.step is None else self.step.state_dict()),
            "iteration": self.iteration,
            "best_mrr": self.best_mrr,
            "num_idle": self.num_idle,
            "normaliser": self.normaliser.parameters(),
            **self._kept,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self.iteration = int(state_dict["iteration"])
        self.best_mrr = float(state_dict["best_mrr"])
        self.num_idle = int(state_dict["num_idle"])
        self.normaliser.restore(dict(state_dict["normaliser"]))
        self._kept = {
            name: value
            for name, value in state_dict.items()
            if name == "best" or name.startswith(PREFIX)
        }
        if self.step is not None:
            self.step.load_state_dict(state_dict)

    def _watch(self, mrr: float) -> bool:
        """Update the count of iterations without a better MRR; return whether this is the best."""
        if math.isnan(mrr):  # without validation links, convergence cannot be measured
            return False
        better = mrr > self.best_mrr
        self.best_mrr = mrr if better else self.best_mrr
        self.num_idle = 0 if better else self.num_idle + 1
        return better

    def _answer_validation(
        self, similarity: Similarity, joint: JointReport | None, neural: Ranks
    ) -> dict[str, float] | None:
        """Return the joint ranking's validation metrics if the run answers with that ranking."""
        links = self.visible.validation
        if joint is None or not joint.is_answer or not len(links):
            return None
        if joint.ranking is None:
            ranks = joint_ranks(neural, similarity, joint.beliefs, links, links[:, 1])
        else:
            ranks = fused_ranks(neural, similarity, joint.ranking, links, links[:, 1])
        return ranking_metrics(ranks.in_all)

    def _embeddings(self, module: AlignmentModule) -> tuple[Tensor, Tensor]:
        """Return the embeddings; the members of an ensemble are weighted first."""
        if module.num_members > 1:
            rows = module.member_rows()
            links = links_on(self.visible.normaliser_links, rows[0].device)
            module.weigh_members(member_weights(rows, module.num_source, links))
        return module.embeddings()

    def _normalised(self, similarity: Similarity, source: Tensor) -> NeuralBeliefs:
        """Return q of the neural model, and its search if the joint step uses it."""
        self.normaliser.fit(similarity, links_on(self.visible.normaliser_links, source.device))
        searched = None
        if self.local is not None:
            beliefs_of = partial(self.normaliser.beliefs, num_candidates=self.num_candidates)
            offered = self.local.neural_beliefs(similarity, beliefs_of)
        elif self.step is not None and self.step.uses_search:
            offered, searched = self.normaliser.search(similarity, self.num_candidates)
        else:
            offered = self.normaliser.beliefs(similarity, self.num_candidates)
        if self.visible.rejected is not None:
            rejected = links_on(self.visible.rejected, source.device)
            offered = offered.excluding(rejected, similarity.num_target)
        certain = links_on(self.certain, source.device)
        return NeuralBeliefs(
            source,
            offered,
            offered.clamped(certain),
            searched,
            is_first=self.iteration == 0,
            dense=self.normaliser.dense(similarity, certain),
            local=self.local,
        )

    def _joint(self, step: JointStep, similarity: Similarity, neural: NeuralBeliefs) -> JointReport:
        """Run the joint step; pairs that a person rejected are not in its report."""
        joint = step(similarity, self.visible, neural)
        if self.local is not None:
            if joint.recomputed is not None:
                self.local = replace(self.local, source=joint.recomputed)
            joint = self.local.merged(joint)
        if self.visible.rejected is None:
            return joint
        rejected = links_on(self.visible.rejected, joint.beliefs.targets.device)
        pairs = set(map(tuple, self.visible.rejected.tolist()))
        kept = np.array([tuple(link) not in pairs for link in joint.labels.tolist()], dtype=bool)
        weights = joint.label_weights
        return replace(
            joint,
            beliefs=joint.beliefs.excluding(rejected, similarity.num_target),
            labels=joint.labels[kept],
            label_weights=None if weights is None else weights[torch.from_numpy(kept)],
        )

    def _member_reports(
        self, step: JointStep, module: AlignmentModule, neural: NeuralBeliefs
    ) -> list[JointReport]:
        """Run the joint step on the similarity of each member of an ensemble."""
        neural = replace(neural, searched=None)  # the search used the mean similarity
        num_source = module.num_source
        similarities = (
            self.decoder(rows[:num_source], rows[num_source:]) for rows in module.member_rows()
        )
        return [self._joint(step, similarity, neural) for similarity in similarities]

    def _labels(self, joint: JointReport) -> tuple[IntArray, Tensor | None]:
        """Return the links of the next fit and their weights."""
        train, weights = self.visible.encoder_links, joint.label_weights
        if weights is not None:
            weights = torch.cat([weights.new_ones(len(train)), weights])
        return np.concatenate([train, joint.labels]), weights


def _clock(tensor: Tensor) -> float:
    """Return the wall clock time after all work on the device has finished."""
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
    return time.perf_counter()
