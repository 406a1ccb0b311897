"""The Lightning callback that carries out both EM steps between fits."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.em.joint import JointReport, compatible_beliefs
from emea.em.m_step import fit_weights, link_examples, sampled_examples
from emea.em.normaliser import Normaliser
from emea.em.protocol import Visible
from emea.em.two_way_step import TwoWayStep
from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import LabelDataModule
from emea.errors import ConfigError
from emea.evaluation.ranks import link_ranks, ranking_metrics
from emea.matching.beliefs import Beliefs
from emea.matching.candidates import search_recall
from emea.matching.pair_table import PairRanking
from emea.matching.similarity import Similarity
from emea.rules.rule import Rule, RuleView

logger = logging.getLogger(__name__)

RECALL_SAMPLE = 1000
"""Source entities on which an approximate search is compared with an exact one."""

SEARCH, REASONING, EVALUATION = "search", "reasoning", "evaluation"
"""Phases between two fits."""

Decoder = Callable[[Tensor, Tensor], Similarity]


@dataclass(frozen=True, eq=False)
class IterationReport:
    """The state after one fit, for whoever observes the run.

    Args:
        iteration: 0 is the model before any EM step.
        similarity: the neural model's.
        beliefs: q, labelled entities certain.
        normaliser: its fitted parameters.
        joint: what the joint module made of it; ``None`` without rules.
        validation: the neural model's metrics on the validation links, among all targets.
        search_recall: share of the true best candidates that an approximate search found;
            ``None`` where the search was exact.
        seconds: spent on candidate search and on the M- and E-step.
    """

    iteration: int
    similarity: Similarity
    beliefs: Beliefs
    normaliser: dict[str, float]
    joint: JointReport | None
    validation: dict[str, float]
    search_recall: float | None
    seconds: dict[str, float]

    @property
    def answer(self) -> Beliefs:
        """What the run would answer now: each entity's candidates and their probabilities."""
        if self.joint is None or not self.joint.is_answer:
            return self.beliefs
        return self.joint.beliefs

    @property
    def answer_ranking(self) -> PairRanking | None:
        """What ranks the answer before the neural order; ``None``: the neural order alone."""
        return self.joint.ranking if self.joint is not None and self.joint.is_answer else None


Observer = Callable[[IterationReport], None]


class EMCallback(pl.Callback):
    """After each fit: normalise, fit the rule weights (M), derive q* and new labels (E).

    Args:
        visible: all links the callback may use.
        decoder: embeddings to similarity.
        normaliser: similarity to q.
        rule: measures compatibility; ``None`` leaves the neural model alone.
        observer: told the state after each fit; its answer is not used.
        num_candidates: K, candidates per entity.
        m_step: ``links`` fits the weights on known links, ``pseudolikelihood`` on labels
            drawn from q (Eq. 13).
        sampling: ``argmax`` takes the best candidate, ``sample`` draws one.
        ridge: strength of the prior on rule weights.
        patience: iterations without a better MRR on the validation links after which the
            model counts as converged; ``None``: never.
        seed: of the drawn samples.
        two_way: takes the place of both steps unless it is off; ``None``: the paper's.

    Attributes:
        on_phase: called with the name of each phase that starts, for a progress display.
    """

    def __init__(
        self,
        visible: Visible,
        decoder: Decoder,
        normaliser: Normaliser,
        rule: Rule | None,
        observer: Observer,
        num_candidates: int = 10,
        m_step: str = "links",
        sampling: str = "argmax",
        ridge: float = 0.01,
        patience: int | None = None,
        seed: int = 0,
        two_way: TwoWayStep | None = None,
    ) -> None:
        if m_step not in ("links", "pseudolikelihood"):
            raise ValueError(f"m_step is links or pseudolikelihood, not {m_step}")
        if sampling not in ("argmax", "sample"):
            raise ValueError(f"sampling is argmax or sample, not {sampling}")
        self.visible = visible
        self.decoder = decoder
        self.normaliser = normaliser
        self.rule = rule
        self.observer = observer
        self.on_phase: Callable[[str], None] = lambda phase: None
        # one tensor for all iterations: a rule sees by identity that nothing changed
        given = visible.relation_links
        self.relation_links = None if given is None else _tensor(given, torch.device("cpu"))
        unseen = visible.unseen_links if rule is not None and rule.fits_on_unseen_links else None
        self.weight_links = visible.weight_links if unseen is None else unseen
        self.certain = visible.train if unseen is None else np.concatenate([visible.train, unseen])
        self.num_candidates = num_candidates
        self.m_step = m_step
        self.sampling = sampling
        self.ridge = ridge
        self.patience = patience
        self.two_way = None if two_way is None or two_way.is_off else two_way
        self.iteration = 0
        self.best_mrr = -1.0
        self.num_idle = 0
        self.weights = torch.zeros(0, dtype=torch.float64)
        # sampling happens on the CPU, so one generator serves every device
        self.generator = torch.Generator().manual_seed(seed)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Carry out both steps, and hand the next fit its labels.

        Lightning's ``on_fit_end`` comes after it has taken the model off the device.
        """
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        assert isinstance(pl_module, AlignmentModule) and isinstance(data, LabelDataModule)
        self.between_fits(pl_module, data)

    def between_fits(self, module: AlignmentModule, data: LabelDataModule) -> None:
        """Normalise, M-step, E-step, new labels; then tell the observer."""
        self.on_phase(SEARCH)
        start = time.perf_counter()
        source, target = module.embeddings()
        similarity = self.decoder(source, target)
        offered = self._normalised(similarity)
        exact = similarity.cells is None
        recall = None if exact else search_recall(similarity, offered.targets, RECALL_SAMPLE)
        beliefs = offered.clamped(_tensor(self.certain, source.device))
        validation = ranking_metrics(link_ranks(similarity, self.visible.validation).in_all)
        searched = _clock(source)
        joint = None
        if self.has_reasoning:
            self.on_phase(REASONING)
        if self.two_way is not None:
            joint = self.two_way(similarity, self.visible)
        elif self.rule is not None:
            joint = self._joint(offered, beliefs, source)
        seconds = {"search": searched - start, "joint": _clock(source) - searched}
        if joint is not None:
            self._relabel(data, joint)
        self._watch(validation["mrr"])
        fitted = self.normaliser.parameters()
        report = IterationReport(
            self.iteration,
            similarity,
            beliefs,
            fitted,
            joint,
            validation,
            recall,
            seconds,
        )
        self.iteration += 1
        self.on_phase(EVALUATION)
        self.observer(report)

    @property
    def has_reasoning(self) -> bool:
        """Whether rules change what the neural model believes."""
        return self.two_way is not None or self.rule is not None

    @property
    def phases(self) -> tuple[str, ...]:
        """The names of what follows each fit, in this order."""
        return (SEARCH, *((REASONING,) if self.has_reasoning else ()), EVALUATION)

    @property
    def converged(self) -> bool:
        """Whether the validation links' MRR has stopped rising for ``patience`` iterations."""
        return self.patience is not None and self.num_idle >= self.patience

    def state_dict(self) -> dict[str, Any]:
        """Everything the next iteration depends on, in plain values and tensors."""
        of_step = {} if self.two_way is None else self.two_way.state_dict()
        return {
            **{f"two_way.{name}": value.cpu() for name, value in of_step.items()},
            "iteration": self.iteration,
            "best_mrr": self.best_mrr,
            "num_idle": self.num_idle,
            "weights": self.weights.cpu(),
            "normaliser": self.normaliser.parameters(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.iteration = int(state_dict["iteration"])
        self.best_mrr = float(state_dict["best_mrr"])
        self.num_idle = int(state_dict["num_idle"])
        self.weights = state_dict["weights"]
        self.normaliser.restore(dict(state_dict["normaliser"]))
        self.generator.set_state(state_dict["generator"])
        if self.two_way is not None:
            mark = "two_way."
            of_step = {key: state_dict[key] for key in state_dict if key.startswith(mark)}
            self.two_way.load_state_dict(
                {key.removeprefix(mark): value for key, value in of_step.items()}
            )

    def _watch(self, mrr: float) -> None:
        if math.isnan(mrr):  # no validation links: nothing to converge by
            return
        better = mrr > self.best_mrr
        self.best_mrr = mrr if better else self.best_mrr
        self.num_idle = 0 if better else self.num_idle + 1

    def _normalised(self, similarity: Similarity) -> Beliefs:
        device = similarity.source.device
        self.normaliser.fit(similarity, _tensor(self.visible.normaliser_links, device))
        return self.normaliser.beliefs(similarity, self.num_candidates)

    def _relabel(self, data: LabelDataModule, joint: JointReport) -> None:
        train, weights = self.visible.train, joint.label_weights
        if weights is not None:
            weights = torch.cat([weights.new_ones(len(train)), weights])
        data.relabel(np.concatenate([train, joint.labels]), weights)

    def _joint(self, offered: Beliefs, beliefs: Beliefs, source: Tensor) -> JointReport:
        assert self.rule is not None
        links = self.relation_links
        if links is not None and links.device != source.device:
            links = self.relation_links = links.to(source.device)
        self.rule.prepare(RuleView(beliefs, source, links))
        values = self._values(beliefs)
        self._warn_without_support(values)
        self.weights = self._fit_weights(offered, beliefs, values)
        train = _tensor(self.visible.train, source.device)
        compatible = compatible_beliefs(beliefs, values, self.weights, train)
        best = beliefs.best_slots()
        rows = torch.arange(len(best), device=best.device)
        return JointReport(
            beliefs=compatible,
            labels=self._labels(compatible),
            weights=dict(zip(self.rule.names, self.weights.tolist(), strict=True)),
            compatibility=values[rows, best].mean(1),
        )

    def _values(self, beliefs: Beliefs) -> Tensor:
        assert self.rule is not None
        values = self.rule(beliefs)
        expected = (*beliefs.targets.shape, len(self.rule.names))
        if tuple(values.shape) != expected:
            raise ConfigError(
                f"{type(self.rule).__name__} gave values of shape {list(values.shape)}: a rule "
                f"gives one for each entity, candidate and name of its own, here {list(expected)}"
            )
        return values

    def _warn_without_support(self, values: Tensor) -> None:
        assert self.rule is not None
        if self.iteration:
            return
        speaks = dict(zip(self.rule.names, values.flatten(0, 1).any(0).tolist(), strict=True))
        silent = [name for name in speaks if not speaks[name]]
        if silent:
            logger.warning(
                "no candidate has support from rule %s: the graphs share no structure that the "
                "labels reach, so the labels follow the neural model and other rules alone",
                ", ".join(silent),
            )

    def _fit_weights(self, offered: Beliefs, beliefs: Beliefs, values: Tensor) -> Tensor:
        if self.m_step == "links":
            links = _tensor(self.weight_links, values.device)
            # of the neural model's own candidates: a label that was put there is no example
            rows, slots = link_examples(offered, links)
        else:
            on_cpu = Beliefs(beliefs.targets.cpu(), beliefs.probs.cpu())
            rows, slots = sampled_examples(on_cpu, self.sampling, self.generator)
            rows, slots = rows.to(values.device), slots.to(values.device)
        return fit_weights(values[rows], slots, self.ridge)

    def _labels(self, compatible: Beliefs) -> IntArray:
        """The labels of the unlabelled entities, by q*."""
        compatible = Beliefs(compatible.targets.cpu(), compatible.probs.cpu())
        if self.sampling == "argmax":
            targets = compatible.best_targets().numpy()
        else:
            targets = compatible.sampled_targets(self.generator).numpy()
        pool = np.arange(compatible.num_source)
        if self.visible.label_pool is not None:
            pool = self.visible.label_pool
        unlabelled = np.setdiff1d(pool, self.visible.train[:, 0])
        return np.stack([unlabelled, targets[unlabelled]], axis=1)


def _tensor(links: IntArray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.array(links)).to(device)


def _clock(tensor: Tensor) -> float:
    """Wall clock once the device has finished what was asked of it."""
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
    return time.perf_counter()
