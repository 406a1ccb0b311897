"""The run of an encoder with EM; with ``em=none`` only the encoder."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from emea.config.run_config import RunConfig
from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.em.reports import IterationReport
from emea.errors import UserError
from emea.evaluation.joint_ranks import fused_ranks
from emea.evaluation.metrics import accuracy_by_degree, mapping_metrics
from emea.evaluation.ranks import Ranks, both_pools, link_ranks
from emea.fit.training_loop import Stage, TrainingLoop
from emea.matching.candidates import mutual_best
from emea.record.checked_files import BackgroundWriter
from emea.record.run_folder import CHECKPOINT_FILE
from emea.run.judgement import candidate_warning
from emea.run.observer import EvaluationObserver, compatibility_section, hard_mapping
from emea.run.outcome import Numbers, Outcome, RunInputs
from emea.run.parts import build_parts
from emea.run.warm_start import WarmStart


class EMRun:
    """Trains an encoder, with EM iterations between the fits.

    Args:
        inputs: Settings, graphs, links and device of the run.
        start: The state of an earlier run to start from; ``None`` means a new run.
    """

    def __init__(self, inputs: RunInputs, start: WarmStart | None = None) -> None:
        settings = inputs.settings
        self.settings = settings
        self.split = inputs.split
        self.device = inputs.device
        self.start = start
        self.observer = EvaluationObserver(
            self.split,
            settings.nodes.protocol.name,
            inputs.log,
            settings.em.iterations,
        )
        self.parts = build_parts(
            settings,
            inputs.graphs,
            inputs.visible,
            self.observer,
            inputs.device,
            None if start is None else start.local,
        )

    def train(self, folder: Path, resume_from: Path | None, writer: BackgroundWriter) -> None:
        """Run the fits of all stages; EM steps and a checkpoint follow each iteration.

        Raises:
            UserError: If an update needs the earlier run, because it is local or has no checkpoint.
        """
        data = self.settings.nodes.data
        is_needed = resume_from is None or data.get("is_local")
        if self.start is None and data.get("updated_from") and is_needed:
            raise UserError(
                "This run is an update, which needs the run that it updates. Run the same emea "
                "update command again."
            )
        if self.start is not None and resume_from is None:
            self.start.apply(self.parts)
        plan = stages(self.settings)
        if self.parts.local is not None:
            self.observer.first_stage = "Local update"
            plan = local_stages(self.settings)
        loop = TrainingLoop(
            self.parts,
            self.observer,
            self.device,
            folder / CHECKPOINT_FILE,
            writer,
            self.settings.own.initial_from,
        )
        loop.run(plan, resume_from)

    def outcome(self, pair: GraphPair) -> Outcome:
        """Return the last beliefs, measured on all test links."""
        observer, certain = self.observer, self.parts.em.certain
        report = observer.last
        assert report is not None and observer.initial_ranks and observer.final_ranks
        judged = self.split.with_labels(certain)
        candidates = report.answer.targets.cpu().numpy()
        # without EM, candidates only give probabilities
        validation = self.split.supervision.validation[: None if report.joint else 0]
        few = candidate_warning(candidates, validation)
        return Outcome(
            neural=report.beliefs,
            joint=report.joint.beliefs if report.joint else None,
            beliefs=report.answer,
            labels=torch.from_numpy(np.array(certain)).to(report.answer.targets.device),
            judged=judged,
            ranks={"initial": observer.initial_ranks, "final": observer.final_ranks},
            scores=self._scores(pair, judged, report, observer.final_ranks),
            losses=self.parts.module.losses,
            warnings=[] if few is None else [few],
            embeddings=(report.similarity.source, report.similarity.target),
            votes=report.joint.votes if report.joint else None,
        )

    def _scores(
        self, pair: GraphPair, judged: Split, report: IterationReport, ranks: Ranks
    ) -> Numbers:
        """Return the sections of ``metrics.json`` that the run measures.

        Args:
            pair: The graphs and all their links.
            judged: The split without the test links that the run used as labels.
            report: The report of the last iteration.
            ranks: The ranks of the test links in the result.
        """
        observer, ranked = self.observer, self.observer.ranked
        assert observer.initial_mapping is not None
        mappings = {"initial": observer.initial_mapping, "final": hard_mapping(report.answer)}
        extra: Numbers = {}
        if "counterparts" in observer.history[-1]:
            extra["counterparts"] = observer.history[-1]["counterparts"]
        if self.parts.local is not None:
            extra["recomputed"] = self.parts.local.local.numbers()
        reverse = _reverse_ranks(report, ranked, self.split.test)
        return {
            "initial": observer.history[0]["neural"],
            "final": both_pools(ranks, observer.missed(report)),
            "final_reverse": both_pools(reverse, observer.missed(report, reverse=True)),
            "mapping": _mapping(judged, report),
            "compatibility": compatibility_section(pair, self.split, mappings, self.device),
            "by_degree": accuracy_by_degree(ranks.in_pool, pair.source.degrees()[ranked[:, 0]]),
            **extra,
            "history": observer.history,
        }


def _reverse_ranks(report: IterationReport, ranked: IntArray, test: IntArray) -> Ranks:
    """Return the ranks of the ranked links' sources for their targets in the answer's ranking."""
    links, pool, similarity = ranked[:, ::-1].copy(), test[:, 0], report.similarity.reversed()
    neural = link_ranks(similarity, links, pool)
    ranking = report.answer_ranking
    if ranking is None:
        return neural
    return fused_ranks(neural, similarity, ranking, links, pool, reverse=True)


def _mapping(split: Split, report: IterationReport) -> dict[str, dict[str, float]]:
    """Return precision, recall and F1 over unlabelled source entities, and of mutual pairs."""
    best, probs = report.answer.best_targets(), report.answer.probs.max(1).values
    mutual = _chosen_back(report, best).cpu().numpy()
    known = np.concatenate([split.supervision.train, split.supervision.validation])[:, 0]
    # a ranking may leave entities without an answer
    sources = np.setdiff1d(np.flatnonzero(probs.cpu().numpy() > 0), known)
    pairs = np.stack([sources, best.cpu().numpy()[sources]], axis=1)
    return {
        "all": mapping_metrics(pairs, split.test, split.num_missed),
        "mutual": mapping_metrics(pairs[mutual[sources]], split.test, split.num_missed),
    }


def _chosen_back(report: IterationReport, best: Tensor) -> Tensor:
    """Return whether the best source of an entity's answer is that entity, ``[num_source]``."""
    ranking = report.answer_ranking
    if ranking is None:
        # no search is needed: an unlabelled entity's most probable candidate is its nearest
        return mutual_best(best, report.similarity)
    table, scores = ranking.table, ranking.scores
    lowest = scores.new_full((table.num_target,), -torch.inf)
    return scores.max(1).values >= table.max_by_target(scores, lowest)[best]


def stages(settings: RunConfig) -> list[Stage]:
    """Return the first training, then each EM iteration, with one stage for each encoder."""
    models, plan = settings.models, []
    for iteration in range(settings.em.iterations + 1):
        name = f"EM iteration {iteration}" if iteration else "first training"
        for member, model in enumerate(models):
            restart = iteration > 0 and model.restart
            num_epochs = model.epochs_per_iteration
            if restart or not iteration:
                num_epochs = model.initial_epochs
            if not iteration and settings.own.initial_from:
                num_epochs = 0
            plan.append(
                Stage(
                    name,
                    num_epochs,
                    0 if iteration else settings.turns,
                    restart,
                    (member,),
                    is_last=member == len(models) - 1,
                )
            )
    return plan


def local_stages(settings: RunConfig) -> list[Stage]:
    """Return the stages of an update that recomputes some entities only.

    Weights are kept from the earlier run. An encoder without weights derives its embeddings from
    the labels in each stage.
    """
    model, iterations = settings.models[0], settings.em.iterations
    num_epochs = 0 if model.optimizer else model.initial_epochs
    numbers = range(1, iterations + 1) if iterations else (1,)
    return [Stage(f"update {number}", num_epochs, num_turns=0, restart=False) for number in numbers]
