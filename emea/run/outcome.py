"""What a method gets from a job, and what it returns."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from emea.config.run_config import RunConfig
from emea.data.graph_pair import GraphPair
from emea.data.protocol import Visible
from emea.data.split import Split
from emea.evaluation.ranks import Ranks
from emea.fit.alignment_module import Loss
from emea.literals.decoy_answer import DecoyAnswer
from emea.matching.beliefs import Beliefs

Numbers = dict[str, Any]
"""Numbers of ``metrics.json``, of one of its sections, or of one iteration, by name."""

Log = Callable[[dict[str, float], int], object]
"""Records metrics of a step."""


@dataclass(frozen=True, eq=False)
class RunInputs:
    """Holds what a method may use.

    Args:
        settings: The settings of the run.
        graphs: The pair without its links.
        visible: The links that the run may use.
        split: The split of the links; its test and validation links are used for evaluation only.
        log: A function that records the metrics of a step.
        device: The device to compute on.
    """

    settings: RunConfig
    graphs: GraphPair
    visible: Visible
    split: Split
    log: Log
    device: torch.device


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
        ranks: The ranks of every test link: ``initial`` before EM or reasoning, ``final`` in the
            result, and ``embedding`` by an embedding that is not the result.
        scores: The sections of ``metrics.json`` that the run measured.
        losses: The loss curves of the training.
        warnings: Warnings about the result.
        embeddings: The vectors of all source and target entities; ``None`` if there is no encoder.
        votes: ``[num_members, num_source]`` best target of each encoder of an ensemble.
        decoys: How decoys judged the answer; ``None`` if they did not.
    """

    neural: Beliefs | None
    joint: Beliefs | None
    beliefs: Beliefs
    labels: Tensor
    judged: Split
    ranks: dict[str, Ranks]
    scores: Numbers
    losses: list[Loss]
    warnings: list[str] = field(default_factory=list)
    embeddings: tuple[Tensor, Tensor] | None = None
    votes: Tensor | None = None
    decoys: DecoyAnswer | None = None
