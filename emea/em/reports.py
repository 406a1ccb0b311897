"""The reports of a joint step and of an iteration, and the state of an iteration that is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.em.local import LocalUpdate
from emea.em.normaliser import FittedSearch
from emea.matching.beliefs import Beliefs, DenseBeliefs
from emea.matching.pair_table import PairRanking, PairTable
from emea.matching.similarity import Decoder, Similarity


@dataclass(frozen=True, eq=False)
class NeuralBeliefs:
    """The beliefs of the neural model after a fit.

    Args:
        embeddings: ``[num_source, dim]`` embeddings of the source entities.
        offered: q over the neural model's own candidates.
        beliefs: q in which the step's certain links have probability 1.
        searched: The search that q is based on; ``None`` if q is not a softmax or if the step does
            not use it.
        iteration: Number of the iteration; 0 is the first fit.
        dense: q over all targets with the same certain links; ``None`` if q is not a softmax.
        local: Entities whose beliefs are recomputed; ``None`` means all.
    """

    embeddings: Tensor
    offered: Beliefs
    beliefs: Beliefs
    searched: FittedSearch | None = None
    iteration: int = 0
    dense: DenseBeliefs | None = None
    local: LocalUpdate | None = None


@dataclass(frozen=True, eq=False)
class JointReport:
    """The result of the joint step in one iteration.

    Args:
        beliefs: q*. If ``ranking`` is set, the best candidates by the ranking come first.
        labels: ``[num_labels, 2]`` pseudo-labels for the next fit, without the training links.
        weights: Rule weights by name.
        compatibility: ``[num_source]`` rule value of the neural model's best candidate.
        label_weights: ``[num_labels]`` weight of each pseudo-label in training. With ``None`` a
            pseudo-label has the weight of a training link.
        ranking: Ranks the pairs of a table before all others. With ``None``, q* reorders the
            neural model's candidates.
        is_answer: Whether the run answers with this ranking instead of the neural model's.
        details: Further numbers by name.
        recomputed: ``[num_source]`` bool: entities that a local update recomputed, if the step
            added some to the given ones.
        members: Reports whose labels the members of an ensemble train on; empty if all members
            train on the labels of this report.
    """

    beliefs: Beliefs
    labels: IntArray
    weights: dict[str, float]
    compatibility: Tensor
    label_weights: Tensor | None = None
    ranking: PairRanking | None = None
    is_answer: bool = False
    details: dict[str, float] = field(default_factory=dict)
    recomputed: Tensor | None = None
    members: tuple["JointReport", ...] = ()


@dataclass(frozen=True, eq=False)
class IterationReport:
    """The state after one fit and its EM steps, for the observer of a run.

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


PREFIX = "best."
"""Beginning of the names of a kept report's tensors in a checkpoint."""

NESTED = {"beliefs": Beliefs, "joint": JointReport, "ranking": PairRanking, "table": PairTable}
"""Fields of reports that are objects with tensors."""

COMPUTED = ("similarity", "members")
"""Fields that are not kept: embeddings determine the similarity, and labels are set already."""


def kept_state(report: IterationReport, source: Tensor, target: Tensor) -> dict[str, Any]:
    """Return a report as plain values and CPU tensors, by name.

    Args:
        report: The report of the iteration.
        source: ``[num_source, dim]`` embeddings; ``kept_report`` computes the similarity.
        target: ``[num_target, dim]`` embeddings.
    """
    values = {"source": source, "target": target, **_flattened(report)}
    if report.joint is not None:
        values["joint.labels"] = torch.from_numpy(report.joint.labels)
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    plain = {name: value for name, value in values.items() if name not in tensors}
    kept = {f"{PREFIX}{name}": value.detach().cpu().clone() for name, value in tensors.items()}
    return {"best": plain, **kept}


def kept_report(
    state: Mapping[str, Any], decoder: Decoder, device: torch.device
) -> IterationReport:
    """Return the report from which ``kept_state`` created a state.

    Args:
        state: The return value of ``kept_state``.
        decoder: Computes the similarity from embeddings.
        device: The device of the report's tensors.
    """
    tensors = {
        name.removeprefix(PREFIX): value.to(device)
        for name, value in state.items()
        if name.startswith(PREFIX)
    }
    similarity = decoder(tensors.pop("source"), tensors.pop("target"))
    values = {**state["best"], **tensors}
    if "joint.labels" in values:
        values["joint.labels"] = values["joint.labels"].cpu().numpy()
    report: IterationReport = _restored(IterationReport, {"similarity": similarity, **values})
    return report


def _flattened(report: Any) -> dict[str, Any]:
    """Return the fields of a report and of the objects in it, by their path."""
    found: dict[str, Any] = {}
    for name in (one.name for one in fields(report) if one.name not in COMPUTED):
        value = getattr(report, name)
        if name in NESTED and value is not None:
            found |= {f"{name}.{inner}": part for inner, part in _flattened(value).items()}
        else:
            found[name] = value
    return found


def _restored(kind: type, values: Mapping[str, Any]) -> Any:
    """Return an object from its fields by path."""
    own: dict[str, Any] = {name: value for name, value in values.items() if "." not in name}
    for name, nested in NESTED.items():
        start = f"{name}."
        inner = {key.removeprefix(start): values[key] for key in values if key.startswith(start)}
        if inner:
            own[name] = _restored(nested, inner)
    return kind(**own)
