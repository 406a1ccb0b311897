"""The part of an answer that is probable enough."""

from dataclasses import replace

from torch import Tensor

from emea.matching.beliefs import Beliefs


def accepted(answer: Beliefs, threshold: float, labels: Tensor) -> Beliefs:
    """The answer without what is less probable than a threshold; labels stay.

    Args:
        answer: over one slot, probability 0 where an entity has no match.
        threshold: least probability; beyond 1 nothing but the labels is left.
        labels: ``[num_labels, 2]`` links that are certain.
    """
    # in double precision: a threshold that was itself a probability must meet it exactly
    probs = answer.probs.masked_fill(answer.probs.double() < threshold, 0)
    return replace(answer, probs=probs).clamped(labels)
