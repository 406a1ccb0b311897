"""The run of an encoder with EM; with ``em=none`` only the encoder."""

from dataclasses import replace
from math import nan
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
from emea.record.file_names import CHECKPOINT_FILE
from emea.run.building import build_run
from emea.run.judgement import candidate_warning, score_warning
from emea.run.observer import EvaluationObserver, compatibility_section, hard_mapping
from emea.run.outcome import Numbers, Outcome, RunInputs
from emea.run.warm_start import WarmStart


class EMRun:
    """Trains an encoder, with EM iterations between the fits.

    Args:
        inputs: Settings, graphs, links and device of the run.
        start: The state of an earlier run to start from; ``None`` means a new run.
    """

    def __init__(self, inputs: RunInputs, start: WarmStart | None = None) -> None:
        settings = inputs.settings
        if settings.updated_from:
            # the first iteration of an update starts from matches, which are not kept
            settings = replace(settings, em=replace(settings.em, keep="last"))
        self.settings = settings
        self.split = inputs.split
        self.device = inputs.device
        self.start = start
        self.observer = EvaluationObserver(
            self.split,
            settings.name("protocol"),
            inputs.log,
            settings.em.iterations,
        )
        self.parts = build_run(
            settings,
            inputs.graphs,
            inputs.visible,
            observer=self.observer,
            device=inputs.device,
            local=None if start is None else start.local,
        )

    def train(
        self, folder: Path, resume_from: Path | None, writer: BackgroundWriter
    ) -> None:
        """Run the fits of all stages; EM steps and a checkpoint follow each iteration.

        Raises:
            UserError: If an update needs the earlier run, because it is local or has no checkpoint.
        """
        settings = self.settings
        is_local = settings.setting("data", "is_local")
        is_needed = resume_from is None or is_local
        if self.start is None and settings.updated_from and is_needed:
            raise UserError(
                "This run is an update, which needs the run that it updates. Run the same emea "
                "update command again."
            )
        if self.start is not None and resume_from is None:
            self.start.apply(self.parts)
        plan = stages(settings)
        if self.parts.local is not None:
            self.observer.first_stage = "Local update"
            plan = local_stages(settings)
        loop = TrainingLoop(
            self.parts,
            self.observer,
            self.device,
            folder / CHECKPOINT_FILE,
            writer,
            settings.own.initial_from,
        )
        loop.run(plan, resume_from)

    def outcome(self, pair: GraphPair) -> Outcome:
        """Return the last beliefs, measured on all test links."""
        observer = self.observer
        certain = self.parts.em.certain
        report = observer.last
        assert report is not None and observer.initial_ranks and observer.final_ranks
        judged = self.split.with_labels(certain)
        return Outcome(
            neural=report.beliefs,
            joint=report.joint.beliefs if report.joint else None,
            beliefs=report.answer,
            labels=torch.from_numpy(np.array(certain)).to(report.answer.targets.device),
            judged=judged,
            ranks={"initial": observer.initial_ranks, "final": observer.final_ranks},
            scores=self._scores(pair, judged, report, observer.final_ranks),
            losses=self.parts.module.losses,
            warnings=self._warnings(report, observer.final_ranks),
            embeddings=(report.similarity.source, report.similarity.target),
            votes=report.joint.votes if report.joint else None,
        )

    def _warnings(self, report: IterationReport, ranks: Ranks) -> list[str]:
        """Return the warnings that follow from the scores and from the candidates."""
        if report.joint is None:  # without EM, candidates only give probabilities
            return []
        observer = self.observer
        validation = self.split.supervision.validation
        test_hit = both_pools(ranks, observer.missed(report))["hit@1"]
        worse = score_warning(
            observer.history,
            observer.answered,
            test_hit if len(self.split.test) else nan,
            len(observer.validation),
            len(observer.ranked),
        )
        few = candidate_warning(report.answer.targets.cpu().numpy(), validation)
        return [text for text in (worse, few) if text is not None]

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
        observer = self.observer
        ranked = self.observer.ranked
        assert observer.initial_mapping is not None
        mappings = {
            "initial": observer.initial_mapping,
            "final": hard_mapping(report.answer),
        }
        extra: Numbers = {}
        if self.settings.em.keep == "best":
            extra["kept_iteration"] = observer.answered["iteration"]
        if "counterparts" in observer.answered:
            extra["counterparts"] = observer.answered["counterparts"]
        if self.parts.local is not None:
            extra["recomputed"] = self.parts.local.local.numbers()
        reverse = _reverse_ranks(report, ranked, self.split.test)
        return {
            "initial": observer.history[0]["neural"],
            "final": both_pools(ranks, observer.missed(report)),
            "final_reverse": both_pools(reverse, observer.missed(report, reverse=True)),
            "mapping": _mapping(judged, report),
            "compatibility": compatibility_section(
                pair, self.split, mappings, self.device
            ),
            "by_degree": accuracy_by_degree(
                ranks.in_pool, pair.source.degrees()[ranked[:, 0]]
            ),
            **extra,
            "history": observer.history,
        }


def _reverse_ranks(report: IterationReport, ranked: IntArray, test: IntArray) -> Ranks:
    """Return the ranks of the ranked links' sources for their targets in the answer's ranking."""
    links = ranked[:, ::-1].copy()
    pool = test[:, 0]
    similarity = report.similarity.reversed()
    neural = link_ranks(similarity, links, pool)
    ranking = report.answer_ranking
    if ranking is None:
        return neural
    return fused_ranks(neural, similarity, ranking, links, pool=pool, reverse=True)


def _mapping(split: Split, report: IterationReport) -> dict[str, dict[str, float]]:
    """Return precision, recall and F1 over unlabelled source entities, and of mutual pairs."""
    best = report.answer.best_targets()
    probs = report.answer.probs.max(1).values
    mutual = _chosen_back(report, best).cpu().numpy()
    known = np.concatenate([split.supervision.train, split.supervision.validation])[
        :, 0
    ]
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
    table = ranking.table
    scores = ranking.scores
    lowest = scores.new_full((table.num_target,), -torch.inf)
    return scores.max(1).values >= table.max_by_target(scores, lowest)[best]


def stages(settings: RunConfig) -> list[Stage]:
    """Return the first training, then each EM iteration, with one stage for each encoder."""
    models = settings.models
    plan = []
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
    model = settings.models[0]
    iterations = settings.em.iterations
    num_epochs = 0 if model.optimizer else model.initial_epochs
    numbers = range(1, iterations + 1) if iterations else (1,)
    return [
        Stage(f"update {number}", num_epochs, num_turns=0, restart=False)
        for number in numbers
    ]
