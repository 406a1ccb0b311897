"""The observer of a run: the only one who asks the test links, and answers nobody."""

import logging
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from emea.data.arrays import IntArray
from emea.em.em_callback import IterationReport, JointReport
from emea.evaluation.conflicts import conflict_share
from emea.evaluation.joint_ranks import joint_ranks
from emea.evaluation.mapping_metrics import mapping_metrics
from emea.evaluation.ranking_metrics import both_pools
from emea.evaluation.ranks import Ranks, link_ranks

logger = logging.getLogger(__name__)

Log = Callable[[dict[str, float], int], None]


class TestObserver:
    """Measures every iteration on the test links.

    Args:
        test: the test links.
        validation: the validation links, whose entities' labels the test links cannot judge.
        protocol: named in every line, since a number means nothing without it.
        log: where metrics with a step go.

    Attributes:
        history: one entry per iteration, as ``metrics.json`` holds it.
        last: the last iteration's report.
        initial_ranks, final_ranks: neural ranks of the test links.
    """

    __test__ = False  # the name is not a test's

    def __init__(self, test: IntArray, validation: IntArray, protocol: str, log: Log) -> None:
        self.test = test
        self.validation = validation
        self.protocol = protocol
        self.log = log
        self.history: list[dict[str, Any]] = []
        self.last: IterationReport | None = None
        self.initial_ranks: Ranks | None = None
        self.final_ranks: Ranks | None = None

    def __call__(self, report: IterationReport) -> None:
        """Measure, keep and tell one iteration."""
        start = time.perf_counter()
        ranks = link_ranks(report.similarity, self.test)
        self.initial_ranks = self.initial_ranks or ranks
        self.final_ranks = ranks
        self.last = report
        entry: dict[str, Any] = {
            "iteration": report.iteration,
            "neural": both_pools(ranks),
            "joint": None,
            "validation": report.validation,
            "normaliser": report.normaliser,
            "conflicts": conflict_share(report.beliefs.best_targets().cpu().numpy()),
            "seconds": dict(report.seconds),
        }
        if report.joint is not None:
            entry |= self._joint_entry(report.joint, ranks)
        entry["seconds"]["evaluate"] = time.perf_counter() - start
        self.history.append(entry)

    def tell(self, neural_seconds: float, num_epochs: int) -> None:
        """Log the last iteration, whose fit took so long and had so many epochs."""
        entry = self.history[-1]
        entry["epochs"] = num_epochs
        entry["seconds"]["neural"] = neural_seconds
        self.log(flattened(entry), entry["iteration"])
        logger.info(self._line(entry))

    def _joint_entry(self, joint: JointReport, neural: Ranks) -> dict[str, Any]:
        ranks = joint_ranks(neural, joint.beliefs, self.test)
        judged = joint.labels[~np.isin(joint.labels[:, 0], self.validation[:, 0])]
        return {
            "joint": both_pools(ranks),
            "weights": joint.weights,
            "labels": {**mapping_metrics(judged, self.test), "num_labels": len(joint.labels)},
            "compatibility": float(joint.compatibility.mean()),
        }

    def _line(self, entry: dict[str, Any]) -> str:
        parts = [f"iteration {entry['iteration']:>2}", f"neural Hit@1 {_hit(entry['neural'])}"]
        if entry["joint"] is not None:
            parts.append(f"joint Hit@1 {_hit(entry['joint'])}")
            parts.append(f"labels {entry['labels']['num_labels']}")
        seconds = entry["seconds"]
        spent = " + ".join(
            f"{seconds[name]:.1f}" for name in ("neural", "search", "joint") if name in seconds
        )
        return "  ".join([*parts, f"MR {entry['neural']['mr']:.1f}", f"{spent} s", self.protocol])


def flattened(entry: dict[str, Any], prefix: str = "") -> dict[str, float]:
    """Nested numbers by their path, ``neural/hit@1``; what is no number is left out."""
    flat: dict[str, float] = {}
    for key, value in entry.items():
        if isinstance(value, dict):
            flat |= flattened(value, f"{prefix}{key}/")
        elif _is_number(value) and key != "iteration":
            flat[f"{prefix}{key}"] = float(value)
    return flat


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _hit(metrics: dict[str, Any]) -> str:
    return f"{metrics['hit@1']:.4f}"
