"""A run of a reasoning baseline."""

import logging
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from emea.baselines.reasoner import Reasoner, ReasoningReport
from emea.data.graph_pair import GraphPair
from emea.data.settings import Cardinality
from emea.data.split import Split
from emea.evaluation.metrics import accuracy_by_degree, mapping_metrics, unknown_pairs
from emea.evaluation.ranks import (
    Missed,
    Ranks,
    both_pools,
    link_ranks,
    matched_metrics,
    matched_ranks,
)
from emea.fit.checkpoint import save_matching
from emea.fit.training_loop import CountedBlocks
from emea.literals.decoy_answer import NOTHING_IN_COMMON, DecoyAnswer
from emea.matching.beliefs import Matching
from emea.matching.many_matching import ManyMatching
from emea.matching.similarity import Similarity
from emea.record.checked_files import BackgroundWriter
from emea.record.file_names import CHECKPOINT_FILE
from emea.run.building import BuiltRun, build_run
from emea.run.decoy_run import decoy_beliefs, decoy_matching, judged_by_decoys
from emea.run.observer import (
    announced_sample,
    compatibility_section,
    flattened,
    hard_mapping,
)
from emea.run.outcome import Log, Numbers, Outcome, RunInputs
from emea.runtime.progress import StepProgress

logger = logging.getLogger(__name__)


class ReasoningObserver:
    """Measures every iteration of a baseline.

    Args:
        split: The split of the links. Test links are used for evaluation; entities of training and
            validation links are not evaluated.
        cardinality: How many counterparts an entity may have.
        log: A function that records the metrics of a step.

    Attributes:
        ranked: The test links that have ranks, a sample of very many.
        history: One entry per iteration, as in ``metrics.json``.
        ranks: Ranks of the first and the last matching, and of the embedding if there is one.
        embedding_seconds: Duration of training since the last iteration; the run adds to it.
    """

    def __init__(self, split: Split, cardinality: Cardinality, log: Log) -> None:
        self.split = split
        self.ranked = announced_sample(split.test)
        self.log = log
        self._known = np.concatenate(
            [split.supervision.train, split.supervision.validation]
        )
        self._cardinality = cardinality
        self._measured: Similarity | None = None
        self._embedding: Numbers | None = None
        self._start = time.perf_counter()
        self.history: list[Numbers] = []
        self.ranks: dict[str, Ranks] = {}
        self.embedding_seconds = 0.0

    def __call__(self, report: ReasoningReport) -> None:
        """Measure, keep and log one iteration."""
        start = time.perf_counter()
        pairs = report.matching.pairs().cpu().numpy()
        # known links decide the other pairs
        unknown = unknown_pairs(pairs, self._known, self._cardinality)
        ranks = matched_ranks(pairs, self.ranked)
        self.ranks.setdefault("initial", ranks)
        self.ranks["final"] = ranks
        reasoning = start - self._start - self.embedding_seconds
        entry: Numbers = {
            "iteration": report.iteration,
            "neural": self._of_embedding(report.similarity),
            "joint": matched_metrics(ranks, self.split.missed_share),
            "mapping": mapping_metrics(unknown, self.split.test, self.split.num_missed),
            "validation": matched_metrics(
                matched_ranks(pairs, self.split.supervision.validation)
            ),
            "num_pairs": len(pairs),
            "num_changes": report.num_changes,
            "seconds": {
                "neural": self.embedding_seconds,
                "search": 0.0,
                "joint": reasoning,
            },
        }
        entry["seconds"]["evaluate"] = time.perf_counter() - start
        self.history.append(entry)
        self.log(flattened(entry), report.iteration)
        logger.info(self._line(entry))
        self.embedding_seconds, self._start = 0.0, time.perf_counter()

    def _of_embedding(self, similarity: Similarity | None) -> Numbers | None:
        # several iterations share one embedding, which is measured once
        if similarity is not None and similarity is not self._measured:
            ranks = link_ranks(similarity, self.ranked, self.split.test[:, 1])
            pool_size = max(1, len(np.unique(self.split.test[:, 1])))
            missed = Missed(self.split.missed_share, pool_size, similarity.num_target)
            self._measured, self._embedding = similarity, both_pools(ranks, missed)
            self.ranks["embedding"] = ranks
        return self._embedding

    def _line(self, entry: Numbers) -> str:
        mapping = entry["mapping"]
        seconds = entry["seconds"]
        parts = []
        if len(self.split.test):
            neural = (
                f" ({entry['neural']['hit@1']:.4f} by the encoder)"
                if entry["neural"]
                else ""
            )
            parts.append(
                f"test Hit@1 {mapping['recall']:.4f}{neural}, precision "
                f"{mapping['precision']:.4f}, F1 {mapping['f1']:.4f}"
            )
        if len(self.split.supervision.validation):
            parts.append(f"validation Hit@1 {entry['validation']['hit@1']:.4f}")
        parts.append(f"{entry['num_pairs']:,} pairs, {entry['num_changes']:,} changed")
        train = f"train {seconds['neural']:.1f} s, " if seconds["neural"] else ""
        parts.append(f"{train}reasoning {seconds['joint']:.1f} s")
        # a baseline never sees test links (emea.config.checks)
        end = " [protocol strict]" if len(self.split.test) else ""
        return f"Iteration {entry['iteration']}: {'; '.join(parts)}{end}"


class ReasoningRun:
    """Runs a baseline that reasons from training links.

    Args:
        inputs: Settings, graphs, links and device of the run.

    Attributes:
        parts: The encoder and its labels. The first embedding builds them, because a method that
            only reasons does not need them.
    """

    def __init__(self, inputs: RunInputs) -> None:
        self.inputs = inputs
        self.split = inputs.split
        self.device = device = inputs.device
        self.seeds = torch.from_numpy(inputs.visible.train.copy()).to(device)
        self.observer = ReasoningObserver(
            inputs.split, inputs.graphs.cardinality, inputs.log
        )
        make_reasoner = inputs.settings.reasoner
        assert make_reasoner is not None, "only baselines reason"
        self.reasoner: Reasoner = make_reasoner(pair=inputs.graphs, device=device)
        self.parts: BuiltRun | None = None
        self.matching: Matching | ManyMatching | None = None
        self.decoys: DecoyAnswer | None = None

    def train(
        self, folder: Path, resume_from: Path | None, writer: BackgroundWriter
    ) -> None:
        """Reason from the seeds; there are no checkpoints to resume from before the end."""
        self.matching = self.reasoner.align(self.seeds, self.embed, self.observer)
        self.decoys = judged_by_decoys(self.inputs, self.reasoner, self.matching)
        if self.decoys is not None:
            self._take_from_decoys(self.decoys, self.matching)
        module = self.parts.module if self.parts else None
        save_matching(folder / CHECKPOINT_FILE, self.matching, module)

    def _take_from_decoys(
        self, answer: DecoyAnswer, matching: Matching | ManyMatching
    ) -> None:
        """Replace the matching by the likely answers, and report them as one more iteration."""
        assert isinstance(matching, Matching)
        updated = decoy_matching(answer, self.seeds, matching.num_target)
        num_changes = updated.num_changes(matching)
        self.observer(ReasoningReport(len(self.observer.history), updated, num_changes))
        self.matching = updated

    def embed(self, links: Tensor) -> Similarity:
        """Return the similarity of the entities by an encoder with new weights and these links."""
        start = time.perf_counter()
        given = self.inputs
        if self.parts is None:
            # the EM callback of the parts is not used, and neither are its reports
            self.parts = build_run(
                given.settings,
                given.graphs,
                given.visible,
                observer=lambda report: None,
                device=self.device,
            )
        else:
            self.parts.restart()
        parts = self.parts
        parts.data.relabel([(links.cpu().numpy(), None)])
        num_epochs = given.settings.models[0].initial_epochs
        num_steps = num_epochs * parts.module.steps_per_epoch(len(links))
        with StepProgress(num_steps) as progress:
            progress.say("training the embedding")
            parts.fit(num_epochs, self.device, [CountedBlocks(progress)])
        parts.module.graph_memory.release()  # reasoning follows, and perhaps no other fit
        similarity = parts.em.decoder(*parts.module.to(self.device).embeddings())
        self.observer.embedding_seconds += time.perf_counter() - start
        return similarity

    def outcome(self, pair: GraphPair) -> Outcome:
        """Return the last matching, measured on the test links."""
        observer = self.observer
        assert self.matching is not None
        beliefs = self.matching.beliefs()
        warnings = []
        if self.decoys is not None:
            beliefs = decoy_beliefs(self.decoys, self.seeds)
            if not len(self.decoys.winners()):
                warnings.append(NOTHING_IN_COMMON)
        return Outcome(
            neural=None,
            joint=beliefs,
            beliefs=beliefs,
            labels=self.seeds,
            judged=self.split,
            ranks=observer.ranks,
            scores=self._scores(pair, self.matching, observer.ranks["final"]),
            losses=self.parts.module.losses if self.parts else [],
            warnings=warnings,
            decoys=self.decoys,
        )

    def _scores(
        self, pair: GraphPair, matching: Matching | ManyMatching, ranks: Ranks
    ) -> Numbers:
        """Return the sections of ``metrics.json`` that the run measures.

        The result is the matching, even if the method used an embedding, because the paper reports
        the matching of PRASE. The ranking by the embedding is an additional section.
        """
        observer = self.observer
        first = observer.history[0]
        last = observer.history[-1]
        # there is no initial stage, because no model makes predictions before the reasoning
        mappings = {"final": hard_mapping(matching.beliefs())}
        degrees = pair.source.degrees()[observer.ranked[:, 0]]
        return {
            "initial": first["joint"],
            "final": last["joint"],
            # a matching consists of the same pairs in both directions
            "final_reverse": last["joint"],
            "mapping": {"all": last["mapping"], "mutual": last["mapping"]},
            "compatibility": compatibility_section(
                pair, self.split, mappings, self.device
            ),
            "by_degree": accuracy_by_degree(ranks.in_pool, degrees),
            "embedding": last["neural"],
            "num_iterations": len(observer.history),
            "history": observer.history,
        }
