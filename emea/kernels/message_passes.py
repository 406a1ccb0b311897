"""Passes of belief propagation between the entities of both sides of a table."""

from torch import Tensor

from emea.kernels import choice
from emea.kernels.other_sums import Slots, other_sums
from emea.kernels.passes import DAMPING, MAX_LOGIT, Messages, Passes


def torch_message_passes(
    slots: Slots, logits: Tensor, start: Messages, passes: Passes
) -> Messages:
    """Return the same as `message_passes`, by operations on whole tables."""
    empty = ~slots.filled
    from_source, from_target = start
    of_source, of_target = other_sums(slots)
    # A pass sends the messages of all source entities, then those of all target entities from
    # the new ones: log x = -log(1 + sum of the other terms), mixed with the previous message
    for _ in range(passes.most):
        source_before = from_source
        target_before = from_target
        sums = of_source(_terms(logits, passes.competition, from_target))
        from_source = sums.log_().neg_().lerp_(from_source, DAMPING)
        sums = of_target(_terms(logits, passes.competition, from_source))
        from_target = sums.log_().neg_().lerp_(from_target, DAMPING)
        change = (from_source - source_before).abs_()
        change += (from_target - target_before).abs_()
        if float(change.masked_fill_(empty, 0).sum()) <= passes.least_change:
            break
    return from_source, from_target


def message_passes(
    slots: Slots, logits: Tensor, start: Messages, passes: Passes
) -> Messages:
    """Return the messages after the passes; those of empty slots are arbitrary.

    Args:
        slots: The pairs.
        logits: ``[num_source, width]`` log potentials, ``-MAX_LOGIT`` in empty slots.
        start: The messages before the first pass, which are not changed.
        passes: What the passes compute, and when they end.
    """
    if choice.uses_triton(logits):
        from emea.kernels import triton_messages  # torch may come without Triton

        return triton_messages.message_passes(slots, logits, start, passes)
    return torch_message_passes(slots, logits, start, passes)


def _terms(logits: Tensor, competition: float, messages: Tensor) -> Tensor:
    """Return ``potential * message ** competition`` of each pair, at least ``exp(-MAX_LOGIT)``.

    The bound changes no result, because terms are added to 1. Exponentials of minus infinity and
    denormal ones take ten times as long.
    """
    return (competition * messages).add_(logits).clamp_(min=-MAX_LOGIT).exp_()
