"""What every method's run has in common: the interface, and what a run finds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from omegaconf import DictConfig
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.em.protocol import Visible
from emea.evaluation.ranks import Ranks
from emea.matching.beliefs import Beliefs

Numbers = dict[str, Any]
"""The numbers of one section of ``metrics.json``, or of one iteration of its history, by name."""

Log = Callable[[dict[str, float], int], None]
"""Records metrics of a step."""


@dataclass(frozen=True, eq=False)
class RunInputs:
    """What every run is built from.

    Args:
        config: The configuration of the run.
        graphs: The pair without its links.
        visible: The links that the run may use.
        split: Its test and validation links are used for evaluation only.
        log: A function that records the metrics of a step.
        device: The device to          on.
    """

    config: DictConfig
    graphs: GraphPair
    visible: Visible
    split: Split
    log: Log
    device: torch.device


@dataclass(frozen=True, eq=False)
class RunScores:
    """The sections of ``metrics.json`` that a run measures itself.

    Args:
        initial: Ranking of the test links before EM or before reasoning.
        final: Ranking of the test links by the result.
        final_reverse: The same from target to source.
        mapping: Precision, recall and F1 of all answers, and of mutual ones.
        compatibility: By stage.
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
    """Ranks of every test link.

    Args:
        initial: Before EM or before reasoning.
        final: By the result.
        embedding: By an embedding that is not the result; ``None``: there is none.
    """

    initial: Ranks
    final: Ranks
    embedding: Ranks | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run found and how good it is, before its answer is chosen.

    Args:
        neural: Candidates and probabilities by the neural model; ``None``: the run has none.
        joint: The same by the joint distribution, or a baseline's matching; ``None``: no EM.
        beliefs: The one of both that is the result.
        labels: ``[num_labels, 2]`` links that the run is certain of.
        judged: The split by which the answer is judged: test links that the run took as labels
            are not among its test links.
        ranks: The ranks of the test links.
        scores: All numbers that the run measured.
        losses: Steps and losses of the training.
        warnings: What the run noticed about its own result.
    """

    neural: Beliefs | None
    joint: Beliefs | None
    beliefs: Beliefs
    labels: Tensor
    judged: Split
    ranks: LinkRanks
    scores: RunScores
    losses: list[tuple[int, float]]
    warnings: list[str] = field(default_factory=list)


class Run(Protocol):
    """One method on one split.

    An implementation is built from graphs without links and from the links that the protocol
    makes visible. It may use the test links of the split for evaluation only.
    """

    def train(self, folder: Path, resume_from: Path | None) -> None:
        """Compute the result.

        Args:
            folder: Where checkpoints go.
            resume_from: a checkpoint of this run to continue after; ``None``: from the beginning.
        """

    def outcome(self, pair: GraphPair) -> Outcome:
        """What was found, measured on the test links.

        Args:
            pair: The graphs and all their links, for evaluation.
        """
