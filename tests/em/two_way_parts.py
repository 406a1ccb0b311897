"""The parts of the two-way step, and what switches each off."""

from typing import Any

ALL_OFF: dict[str, Any] = {
    "both_directions": False,
    "sweeps": 1,
    "propagation": 0,
    "features": ["noisy_or"],
    "unmatched": False,
    "matched_inclusions": False,
    "mutual_labels": False,
    "weighted_labels": False,
    "fused_answer": False,
}
