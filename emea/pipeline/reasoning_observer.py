"""The observer of a baseline: measures its matchings; nothing depends on what it finds."""

import logging
import time
from typing import Any

import numpy as np

from emea.baselines.reasoner import ReasoningReport
from emea.data.split import Split
from emea.evaluation.mapping_metrics import mapping_metrics
from emea.evaluation.matched_ranks import matched_metrics, matched_ranks
from emea.evaluation.ranking_metrics import both_pools
from emea.evaluation.ranks import Ranks, link_ranks
from emea.matching.matching import Matching
from emea.matching.similarity import Similarity
from emea.pipeline.observer import Log, flattened

logger = logging.getLogger(__name__)


class ReasoningObserver:
    """Measures every iteration of a baseline.

    Args:
        split: the test links to measure on, and those whose entities they cannot judge.
        log: where metrics with a step go.

    Attributes:
        history: one entry per iteration, as ``metrics.json`` holds it.
        initial_ranks, final_ranks: of the matchings.
        embedding_ranks: of the embedding, where there is one.
        embedding_seconds: spent on training since the last iteration; whoever trains adds to it.
    """

    def __init__(self, split: Split, log: Log) -> None:
        self.split = split
        self.log = log
        known = np.concatenate([split.supervision.train, split.supervision.validation])
        self._known = known[:, 0]
        self._measured: Similarity | None = None
        self._embedding: dict[str, Any] | None = None
        self._start = time.perf_counter()
        self.history: list[dict[str, Any]] = []
        self.initial_ranks: Ranks | None = None
        self.final_ranks: Ranks | None = None
        self.embedding_ranks: Ranks | None = None
        self.embedding_seconds = 0.0

    def __call__(self, report: ReasoningReport) -> None:
        """Measure, keep and tell one iteration."""
        start = time.perf_counter()
        targets = report.matching.targets.cpu().numpy()
        self.final_ranks = matched_ranks(targets, self.split.test)
        self.initial_ranks = self.initial_ranks or self.final_ranks
        reasoning = start - self._start - self.embedding_seconds
        entry: dict[str, Any] = {
            "iteration": report.iteration,
            "neural": self._of_embedding(report.similarity),
            "joint": matched_metrics(self.final_ranks),
            "mapping": self.mapping(report.matching),
            "validation": matched_metrics(
                matched_ranks(targets, self.split.supervision.validation)
            ),
            "num_pairs": len(report.matching.sources),
            "num_changes": report.num_changes,
            "seconds": {"neural": self.embedding_seconds, "search": 0.0, "joint": reasoning},
        }
        entry["seconds"]["evaluate"] = time.perf_counter() - start
        self.history.append(entry)
        self.log(flattened(entry), report.iteration)
        logger.info(self._line(entry))
        self.embedding_seconds, self._start = 0.0, time.perf_counter()

    def mapping(self, matching: Matching) -> dict[str, float]:
        """Precision, recall and F1 over source entities without a label."""
        pairs = matching.pairs().cpu().numpy()
        return mapping_metrics(pairs[~np.isin(pairs[:, 0], self._known)], self.split.test)

    def _of_embedding(self, similarity: Similarity | None) -> dict[str, Any] | None:
        # one embedding serves many iterations: it is measured once
        if similarity is not None and similarity is not self._measured:
            self.embedding_ranks = link_ranks(similarity, self.split.test)
            self._measured, self._embedding = similarity, both_pools(self.embedding_ranks)
        return self._embedding

    def _line(self, entry: dict[str, Any]) -> str:
        mapping, seconds = entry["mapping"], entry["seconds"]
        parts = []
        if len(self.split.test):
            neural = f" ({entry['neural']['hit@1']:.4f} by the encoder)" if entry["neural"] else ""
            parts.append(
                f"test Hit@1 {mapping['recall']:.4f}{neural}, precision "
                f"{mapping['precision']:.4f}, F1 {mapping['f1']:.4f}"
            )
        if len(self.split.supervision.validation):
            parts.append(f"validation Hit@1 {entry['validation']['hit@1']:.4f}")
        parts.append(f"{entry['num_pairs']:,} pairs, {entry['num_changes']:,} changed")
        train = f"train {seconds['neural']:.1f} s, " if seconds["neural"] else ""
        parts.append(f"{train}reasoning {seconds['joint']:.1f} s")
        return f"Iteration {entry['iteration']}: {'; '.join(parts)}"
