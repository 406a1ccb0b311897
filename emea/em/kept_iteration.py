"""Conversion of the iteration that a run answers with to and from a checkpoint."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from emea.em.joint import JointReport
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking, PairTable
from emea.matching.similarity import Similarity

if TYPE_CHECKING:
    from emea.em.em_callback import IterationReport

PREFIX = "best."
"""Beginning of the names of its tensors in a checkpoint."""

PLAIN = ("iteration", "normaliser", "validation", "answer_validation", "search_recall", "seconds")
TABLE = ("targets", "scores", "filled")


def kept_state(report: "IterationReport", source: Tensor, target: Tensor) -> dict[str, Any]:
    """Return a report as plain values and CPU tensors, by name.

    Args:
        report: The report of the iteration.
        source: ``[num_source, dim]`` embeddings; ``kept_report`` computes the similarity.
        target: ``[num_target, dim]`` embeddings.
    """
    tensors: dict[str, Tensor | None] = {
        "source": source,
        "target": target,
        "neural.targets": report.beliefs.targets,
        "neural.probs": report.beliefs.probs,
    }
    plain: dict[str, Any] = {name: getattr(report, name) for name in PLAIN}
    joint = report.joint
    if joint is not None:
        tensors |= {
            "joint.targets": joint.beliefs.targets,
            "joint.probs": joint.beliefs.probs,
            "labels": torch.from_numpy(joint.labels.copy()),
            "compatibility": joint.compatibility,
            "label_weights": joint.label_weights,
        }
        plain["joint"] = {
            "weights": joint.weights,
            "is_answer": joint.is_answer,
            "details": joint.details,
        }
        if joint.ranking is not None:
            table = joint.ranking.table
            plain["num_target"] = table.num_target
            tensors |= {f"table.{key}": getattr(table, key) for key in TABLE}
            tensors["ranking"] = joint.ranking.scores
    held = {
        f"{PREFIX}{name}": value.detach().cpu().clone()
        for name, value in tensors.items()
        if value is not None
    }
    return {"best": plain, **held}


def kept_report(
    state: Mapping[str, Any],
    decoder: Callable[[Tensor, Tensor], Similarity],
    device: torch.device,
) -> "IterationReport":
    """Return the report from which ``kept_state`` created a state.

    Args:
        state: The return value of ``kept_state``.
        decoder: Computes the similarity from embeddings.
        device: The device of the report's tensors.
    """
    from emea.em.em_callback import IterationReport

    tensors = {
        name.removeprefix(PREFIX): value.to(device)
        for name, value in state.items()
        if name.startswith(PREFIX)
    }
    plain = dict(state["best"])
    joint, num_target = plain.pop("joint", None), plain.pop("num_target", None)
    report = IterationReport(
        similarity=decoder(tensors["source"], tensors["target"]),
        beliefs=Beliefs(tensors["neural.targets"], tensors["neural.probs"]),
        joint=None,
        **plain,
    )
    if joint is None:
        return report
    ranking = None
    if num_target is not None:
        targets, scores, filled = (tensors[f"table.{key}"] for key in TABLE)
        ranking = PairRanking(PairTable(targets, scores, filled, num_target), tensors["ranking"])
    restored = JointReport(
        beliefs=Beliefs(tensors["joint.targets"], tensors["joint.probs"]),
        labels=tensors["labels"].cpu().numpy(),
        compatibility=tensors["compatibility"],
        label_weights=tensors.get("label_weights"),
        ranking=ranking,
        **joint,
    )
    return replace(report, joint=restored)
