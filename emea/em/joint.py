"""The joint distribution q* and what a joint step reports."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking


def conditional(values: Tensor, weights: Tensor) -> Tensor:
    """``p(y_e = e' | y_-e)`` over the candidates (Eq. 7).

    The local compatibility of Eq. 4 is ``exp(sum_k phi_k g_k + phi_0)``; phi_0 is the same for
    every candidate and cancels.

    Args:
        values: ``[num_source, k, num_rules]`` indicator values of each candidate.
        weights: ``[num_rules]`` phi.

    Returns:
        ``[num_source, k]`` probabilities, each row summing to 1.
    """
    return torch.softmax(values @ weights.to(values.dtype), dim=1)


def compatible_beliefs(
    beliefs: Beliefs, values: Tensor, weights: Tensor, labels: Tensor
) -> Beliefs:
    """q* of all entities in one block update (Eq. 12); labelled entities stay certain.

    Args:
        beliefs: q, which names the candidates.
        values: ``[num_source, k, num_rules]`` indicator values under q.
        weights: ``[num_rules]`` phi.
        labels: ``[num_labels, 2]`` links of the labelled entities.
    """
    free = Beliefs(targets=beliefs.targets, probs=conditional(values, weights))
    return free.clamped(labels)


@dataclass(frozen=True, eq=False)
class JointReport:
    """What the joint module made of one iteration.

    Args:
        beliefs: q*; where pairs are ranked, best by the ranking first.
        labels: ``[num_labels, 2]`` pseudo-labels handed to the next fit, training links apart.
        weights: rule weights by name.
        compatibility: ``[num_source]`` rule value of the neural model's best candidate.
        label_weights: ``[num_labels]`` how much each label counts in training; ``None``: as much
            as a training link.
        ranking: ranks pairs of a table before all others; ``None``: q* reorders the neural
            model's candidates.
        is_answer: whether the run stands for this ranking, and not for the neural model's.
        details: further numbers by name.
    """

    beliefs: Beliefs
    labels: IntArray
    weights: dict[str, float]
    compatibility: Tensor
    label_weights: Tensor | None = None
    ranking: PairRanking | None = None
    is_answer: bool = False
    details: dict[str, float] = field(default_factory=dict)
