"""Evaluates rankings on test links while a run trains; the run does not use the results."""

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from emea.data.arrays import NO_MATCH, IntArray
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.em.reports import IterationReport
from emea.evaluation.joint_ranks import fused_ranks, joint_ranks
from emea.evaluation.metric_table import RANKING_METRICS
from emea.evaluation.metrics import (
    compatibility_metrics,
    conflict_share,
    mapping_metrics,
)
from emea.evaluation.ranks import Missed, Ranks, both_pools, link_ranks, ranked_links
from emea.matching.beliefs import Beliefs
from emea.rules.paris import PARIS, mapping_compatibility
from emea.rules.settings import ParisRuleSettings
from emea.run.outcome import Log, Numbers

logger = logging.getLogger(__name__)


def compatibility_section(
    pair: GraphPair, split: Split, mappings: dict[str, IntArray], device: torch.device
) -> dict[str, Numbers]:
    """Return the compatibility of each mapping and of the oracle, for ``metrics.json``.

    Each mapping is used unchanged: labelled entities have their label in it if the run is certain
    of labels, and inclusions of relations are estimated only from the mapping. The oracle's mapping
    consists of all links, so its inclusions are estimated from all links.

    Args:
        pair: The graphs and all their links.
        split: The split of the links; the test links' source entities are judged.
        mappings: ``[num_source]`` counterparts, or ``NO_MATCH``, by stage.
        device: The device to compute on.
    """
    rule = PARIS(pair, **asdict(ParisRuleSettings()), device=device)
    judged = split.test[:, 0]
    linked = pair.links[:, 0]
    oracle = np.full(pair.source.num_entities, NO_MATCH, dtype=np.int64)
    oracle[linked] = pair.links[:, 1]
    section = {}
    for stage, targets in {**mappings, "oracle": oracle}.items():
        values = mapping_compatibility(rule, torch.from_numpy(targets).to(device))
        section[stage] = compatibility_metrics(
            values.double().cpu().numpy(), targets, judged, linked
        )
    return section


def hard_mapping(beliefs: Beliefs) -> IntArray:
    """Return the most probable candidates, ``NO_MATCH`` if none has any probability."""
    possible = beliefs.probs.max(1).values > 0
    targets: IntArray = (
        torch.where(possible, beliefs.best_targets(), NO_MATCH).cpu().numpy()
    )
    return targets


def announced_sample(test: IntArray) -> IntArray:
    """Return the test links that are ranked, and log a line if these are not all."""
    ranked = ranked_links(test)
    if len(ranked) < len(test):
        logger.info(
            "Hit@k, MRR and MR are measured on a fixed random sample of %s of the %s test links",
            *(f"{len(links):,}" for links in (ranked, test)),
        )
    return ranked


class EvaluationObserver:
    """Measures every iteration on the test and validation links.

    Args:
        split: The split with the test and validation links. Labels of validation entities are not
            counted as right or wrong.
        protocol: Name of the protocol, which log lines contain if there are test links.
        log: A function that records the metrics of a step.
        num_iterations: Number of EM iterations planned after the first training.

    Attributes:
        ranked: The test links that are ranked, a sample of very many.
        history: One entry per iteration, as in ``metrics.json``.
        last: The last iteration's report.
        initial_ranks: Neural ranks of the test links.
        initial_mapping: The neural model's best targets before any EM step, labels certain.
        final_ranks: Ranks of the test links in the ranking that the run answers with.
        kept_iteration: Number of an earlier iteration that the run answers with; ``None`` means the
            last one.
        first_stage: Name of the first iteration in log lines.
    """

    def __init__(
        self,
        split: Split,
        protocol: str,
        log: Log,
        num_iterations: int,
    ) -> None:
        self.test = test = split.test
        known = split.supervision
        self.validation = known.validation[: 0 if known.is_crossed else None]
        self.num_missed = split.num_missed
        self.protocol = protocol
        self.log = log
        self.num_iterations = num_iterations
        self.ranked = announced_sample(test)
        self._pool_sizes = [max(1, len(np.unique(test[:, side]))) for side in (0, 1)]
        self.history: list[Numbers] = []
        self.last: IterationReport | None = None
        self.initial_ranks: Ranks | None = None
        self.initial_mapping: IntArray | None = None
        self.final_ranks: Ranks | None = None
        self.kept_iteration: int | None = None
        self.first_stage = "First training"

    @property
    def answered(self) -> Numbers:
        """The history entry of the iteration that the run answers with."""
        return self.history[-1 if self.kept_iteration is None else self.kept_iteration]

    def __call__(self, report: IterationReport) -> None:
        """Measure one iteration and keep its numbers."""
        start = time.perf_counter()
        self.last = report
        measured = self._measured(report)
        if report.iteration < len(
            self.history
        ):  # the run returned to an earlier iteration
            self.kept_iteration = report.iteration
            return
        if self.initial_mapping is None:
            self.initial_mapping = hard_mapping(report.beliefs)
        entry: Numbers = {
            "iteration": report.iteration,
            **measured,
            "validation": report.validation,
            "normaliser": report.normaliser,
            "conflicts": conflict_share(report.beliefs.best_targets().cpu().numpy()),
            "seconds": dict(report.seconds),
        }
        if report.answer_validation is not None:
            entry["validation_answer"] = report.answer_validation
        if report.search_recall is not None:
            entry["search_recall"] = report.search_recall
        entry["seconds"]["evaluate"] = time.perf_counter() - start
        self.history.append(entry)

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return all measurements so far, as plain values and as arrays, to resume from later."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        if self.initial_ranks is not None:
            arrays["initial_in_pool"] = self.initial_ranks.in_pool
            arrays["initial_in_all"] = self.initial_ranks.in_all
        if self.initial_mapping is not None:
            arrays["initial_mapping"] = self.initial_mapping
        return {"history": self.history}, arrays

    def restore(
        self, plain: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]
    ) -> None:
        """Continue from a state; the next iteration sets the last ranks.

        Raises:
            ValueError: If the state belongs to other links.
        """
        self.history = [dict(entry) for entry in plain["history"]]
        if "initial_in_pool" in arrays:
            self.initial_ranks = Ranks(
                arrays["initial_in_pool"], arrays["initial_in_all"]
            )
            shapes = {self.initial_ranks.in_pool.shape, self.initial_ranks.in_all.shape}
            if shapes != {(len(self.ranked),)}:
                raise ValueError("not every test link has a rank")
        self.initial_mapping = arrays.get("initial_mapping")

    def log_iteration(self, neural_seconds: float, num_epochs: int) -> None:
        """Log the last iteration.

        Args:
            neural_seconds: Duration of its fit in seconds.
            num_epochs: Number of epochs of its fit.
        """
        entry = self.history[-1]
        entry["epochs"] = num_epochs
        entry["seconds"]["neural"] = neural_seconds
        self.log(flattened(entry), entry["iteration"])
        logger.info(self._line(entry))

    def missed(self, report: IterationReport, reverse: bool = False) -> Missed:
        """Return the test links that no method can find, with their worst ranks.

        Args:
            report: The report of an iteration, which has the number of candidates.
            reverse: Whether the source entities are the candidates.
        """
        similarity = report.similarity
        side = 0 if reverse else 1
        num_all = similarity.num_source if reverse else similarity.num_target
        share = self.num_missed / max(1, self.num_missed + len(self.test))
        return Missed(share, self._pool_sizes[side], max(1, num_all))

    def _measured(self, report: IterationReport) -> Numbers:
        """Rank test links by the encoder and by the joint step, and return what was measured."""
        links = self.ranked
        pool = self.test[:, 1]
        joint = report.joint
        ranks = link_ranks(report.similarity, links, pool)
        self.initial_ranks = self.initial_ranks or ranks
        self.final_ranks = ranks
        neural = both_pools(ranks, self.missed(report))
        entry: Numbers = {"neural": neural, "joint": None, "num_observed": len(links)}
        if joint is None:
            return entry
        if joint.ranking is None:
            ranks = joint_ranks(ranks, report.similarity, joint.beliefs, links, pool)
        else:
            ranks = fused_ranks(
                ranks, report.similarity, joint.ranking, links, pool=pool
            )
        if joint.is_answer:
            self.final_ranks = ranks
        if joint.shares is not None:
            sides = zip(("source", "target"), joint.shares, strict=False)
            entry["counterparts"] = {side: share._asdict() for side, share in sides}
        judged = joint.labels[~np.isin(joint.labels[:, 0], self.validation[:, 0])]
        return entry | {
            "joint": both_pools(ranks, self.missed(report)),
            "weights": joint.weights,
            "labels": {
                **mapping_metrics(judged, self.test, self.num_missed),
                "num_labels": len(joint.labels),
            },
            "compatibility": float(joint.compatibility.mean()),
            **joint.details,
        }

    def _line(self, entry: Numbers) -> str:
        number = entry["iteration"]
        joint = entry["joint"]
        parts = []
        if len(self.test):
            observed = entry["num_observed"]
            sample = "" if observed == len(self.test) else f" on {observed:,} of them"
            for metric in (one for one in RANKING_METRICS if one.in_log):
                shown = metric.form.format(entry["neural"][metric.name])
                if joint is not None:
                    of_joint = metric.form.format(joint[metric.name])
                    shown += f" (encoder), {of_joint} (joint)"
                parts.append(f"test {metric.title} {shown}{sample}")
        if len(self.validation):
            answer = entry.get("validation_answer")
            shown = f"{(answer or entry['validation'])['hit@1']:.4f}"
            which = (
                f" ({'joint' if answer else 'encoder'})" if joint is not None else ""
            )
            parts.append(f"validation Hit@1 {shown}{which}")
        if joint is not None:
            labels = f"{entry['labels']['num_labels']:,} new labels"
            # there are no former labels to compare the first ones with
            if number and "label_change" in entry:
                labels += f" ({entry['label_change']:.1%} changed)"
            parts.append(labels)
        names = {"neural": "train", "search": "search"}
        names |= {} if joint is None else {"joint": "reasoning"}
        seconds = (
            f"{name} {entry['seconds'][key]:.1f} s" for key, name in names.items()
        )
        parts.append(", ".join(seconds))
        stage = f"EM {number}/{self.num_iterations}" if number else self.first_stage
        # without test links there is nothing that a run could have seen
        end = f" [protocol {self.protocol}]" if len(self.test) else ""
        return f"{stage}: {'; '.join(parts)}{end}"


def flattened(entry: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return nested numbers by their path, such as ``neural/hit@1``; other values are skipped."""
    flat: dict[str, float] = {}
    for key, value in entry.items():
        if isinstance(value, dict):
            flat |= flattened(value, f"{prefix}{key}/")
        elif isinstance(value, bool) or key == "iteration":
            continue
        elif isinstance(value, int | float) and math.isfinite(value):
            flat[f"{prefix}{key}"] = float(value)
    return flat
