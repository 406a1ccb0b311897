"""The interface of a run, its inputs and its outcome."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from omegaconf import DictConfig
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.data.protocol import Visible
from emea.data.split import Split
from emea.evaluation.ranks import Ranks
from emea.matching.beliefs import Beliefs
from emea.record.checked_files import BackgroundWriter

if TYPE_CHECKING:
    from emea.fit.alignment_module import Loss
    from emea.run.warm_start import WarmStart

Numbers = dict[str, Any]
"""The numbers of one section of ``metrics.json``, or of one iteration of its history, by name."""

Log = Callable[[dict[str, float], int], object]
"""Records metrics of a step."""


@dataclass(frozen=True, eq=False)
class RunInputs:
    """Holds the inputs of a run.

    Args:
        config: The configuration of the run.
        graphs: The pair without its links.
        visible: The links that the run may use.
        split: The split of the links; its test and validation links are used for evaluation only.
        log: A function that records the metrics of a step.
        device: The device to compute on.
        writer: Writes checkpoints while the run continues. The caller waits for the last one.
        start: The state of an earlier run to start from; ``None`` means a new run.
    """

    config: DictConfig
    graphs: GraphPair
    visible: Visible
    split: Split
    log: Log
    device: torch.device
    writer: BackgroundWriter
    start: "WarmStart | None" = None


@dataclass(frozen=True, eq=False)
class RunScores:
    """Holds the sections of ``metrics.json`` that a run measures itself.

    Args:
        initial: Metrics of the test links before EM or reasoning.
        final: Metrics of the test links in the result.
        final_reverse: Metrics of the result from target to source.
        mapping: Precision, recall and F1 of all answers, and of mutual ones.
        compatibility: Compatibility of the predictions at each stage.
        by_degree: Hit@1 in each bucket of degrees.
        history: One entry per iteration.
        extra: Sections that only this method has.
    """

    initial: Numbers
    final: Numbers
    final_reverse: Numbers
    mapping: dict[str, dict[str, float]]
    compatibility: dict[str, Numbers]
    by_degree: list[dict[str, float]]
    history: list[Numbers]
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LinkRanks:
    """Holds the rank of every test link.

    Args:
        initial: Ranks before EM or reasoning.
        final: Ranks in the result.
        embedding: Ranks by an embedding that is not the result; ``None`` if there is none.
    """

    initial: Ranks
    final: Ranks
    embedding: Ranks | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """Holds the beliefs of a run and their evaluation, before the answer is decoded.

    Args:
        neural: Candidates and probabilities of the neural model; ``None`` if the run has none.
        joint: Candidates and probabilities of the joint distribution, or a baseline's matching;
            ``None`` if the run has no EM.
        beliefs: The result of the run, which is either ``neural`` or ``joint``.
        labels: ``[num_labels, 2]`` links with probability 1.
        judged: The split that evaluates the answer, without the test links that the run used as
            labels.
        ranks: The ranks of the test links.
        scores: All numbers that the run measured.
        losses: The loss curves of the training.
        warnings: Warnings about the result.
    """

    neural: Beliefs | None
    joint: Beliefs | None
    beliefs: Beliefs
    labels: Tensor
    judged: Split
    ranks: LinkRanks
    scores: RunScores
    losses: "list[Loss]"
    warnings: list[str] = field(default_factory=list)


class Run(Protocol):
    """Interface of a run: one method on one split.

    An implementation is built from graphs without links and from the links that the protocol
    makes visible. It may use the test links of the split for evaluation only.
    """

    def train(self, folder: Path, resume_from: Path | None) -> None:
        """Compute the result.

        Args:
            folder: The folder for checkpoints.
            resume_from: A checkpoint of this run to resume from; ``None`` means from the beginning.
        """

    def outcome(self, pair: GraphPair) -> Outcome:
        """Return the beliefs of the run, evaluated on the test links.

        Args:
            pair: The graphs and all their links, for evaluation.
        """
