"""Rule values and weights into the conditional p(y_e | y_-e), Eq. 4-7."""

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs


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
