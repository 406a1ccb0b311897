"""What passes of belief propagation compute, and when they end."""

from typing import NamedTuple

from torch import Tensor

DAMPING = 0.3
"""Share of the previous message that a pass keeps, in the log domain."""

MAX_LOGIT = 80.0
"""Bound of the potentials, so that their exponentials neither overflow nor become denormal."""

Messages = tuple[Tensor, Tensor]
"""Log messages of the source and of the target entity of each pair, ``[num_source, width]``."""


class Passes(NamedTuple):
    """What the passes compute, and when they end.

    Args:
        competition: Weight of the other side's messages, between 0 and 1.
        most: Bound on the number of passes.
        least_change: Sum of the absolute changes of all messages at which the passes end.
    """

    competition: float
    most: int
    least_change: float
