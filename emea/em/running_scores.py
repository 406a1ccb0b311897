"""A running mean of the similarities of pairs over the iterations."""

import torch
from torch import Tensor

from emea.matching.pair_table import PairTable

Sides = tuple[Tensor, Tensor]


class RunningScores:
    """Keeps a running mean of the pairs' log-probabilities from both sides.

    The similarity of a pair differs between fits on nearly the same labels. A pair that was in the
    last table has the mean of its past and its current value. A new pair has its current value.

    Args:
        share: Share of the past in the mean; with 0 nothing is kept.
    """

    def __init__(self, share: float = 0.0) -> None:
        if not 0 <= share < 1:
            raise ValueError(f"The share of the past must be at least 0 and below 1, got {share}.")
        self.share = share
        self.keys = torch.zeros(0, dtype=torch.int64)
        self.past: Sides = (torch.zeros(0), torch.zeros(0))

    def blended(self, table: PairTable, log_probs: Sides) -> Sides:
        """Return the mean of the past and the given values, ``[num_source, width]`` per side."""
        if not len(self.keys):
            return log_probs
        keys = table.keys()
        self.keys, self.past = self.keys.to(keys.device), _moved(self.past, log_probs[0])
        place = torch.searchsorted(self.keys, keys).clamp_(max=len(self.keys) - 1)
        weight = self.share * ((self.keys[place] == keys) & table.filled)
        first, second = (
            torch.lerp(now, past[place], weight.to(now.dtype))
            for now, past in zip(log_probs, self.past, strict=True)
        )
        return first, second

    def keep(self, table: PairTable, log_probs: Sides) -> None:
        """Keep the values for the next iteration."""
        if not self.share:
            return
        keys, order = table.keys()[table.filled].sort()
        self.keys = keys
        first, second = (side[table.filled][order] for side in log_probs)
        self.past = first, second

    def state_dict(self) -> dict[str, Tensor]:
        """Return the running means; empty if the past has no share."""
        if not self.share:
            return {}
        return {"keys": self.keys, "forth": self.past[0], "back": self.past[1]}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore a saved state.

        Raises:
            ValueError: If the tensors do not have the same length.
        """
        if not self.share:
            return
        keys, past = state["keys"], (state["forth"], state["back"])
        if keys.dtype != torch.int64 or any(side.shape != (len(keys),) for side in past):
            raise ValueError("The running means of pairs do not have the same length.")
        self.keys, self.past = keys, past


def _moved(sides: Sides, like: Tensor) -> Sides:
    return sides[0].to(like), sides[1].to(like)
