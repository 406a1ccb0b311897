"""The parts of ``em=dual``: their names, and whether one of them is on."""

from typing import Any

TWO_WAY = "emea.em.two_way_step.TwoWayStep"

FEATURES = ("similarity", "noisy_or", "evidence", "coverage")
"""What the beliefs of a pair can look at; this list is the only one."""

PAPER_FEATURES = ["noisy_or"]
"""What the paper's q* looks at."""

SWITCHES = (
    *("both_directions", "unmatched", "matched_inclusions"),
    *("mutual_labels", "weighted_labels", "fused_answer"),
)
"""Parts that are true or false."""


def has_part(two_way: Any) -> bool:
    """Whether one of the parts is on; without any, the paper's E- and M-step are done.

    Args:
        two_way: the settings; a part that is left out has its default, which is on.
    """
    features = two_way.get("features")
    return (
        any(two_way.get(name, True) for name in SWITCHES)
        or two_way.get("sweeps", 2) > 1
        or two_way.get("propagation", 5) > 0
        or two_way.get("memory", 0.0) > 0
        or features is None
        or list(features) != PAPER_FEATURES
    )
