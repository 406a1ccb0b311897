"""What earlier encoders thought of a pair, remembered from iteration to iteration."""

import torch
from torch import Tensor

from emea.matching.pair_table import PairTable

Sides = tuple[Tensor, Tensor]


class ScoreMemory:
    """A running mean of the pairs' log-probabilities from both sides.

    One encoder's opinion of a pair is noisy: the next fit, on nearly the same labels, has
    another. A pair that was in the last table counts by the mean of both; one that is new by
    what the encoder says now.

    Args:
        share: of the past in the mean; 0: no memory.
    """

    def __init__(self, share: float = 0.0) -> None:
        if not 0 <= share < 1:
            raise ValueError(f"the share of the past must be at least 0 and below 1, got {share}")
        self.share = share
        self.keys = torch.zeros(0, dtype=torch.int64)
        self.past: Sides = (torch.zeros(0), torch.zeros(0))

    def blended(self, table: PairTable, log_probs: Sides) -> Sides:
        """The mean of the past and of what is given, ``[num_source, width]`` for each side."""
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

    def remember(self, table: PairTable, log_probs: Sides) -> None:
        """Keep these for the next iteration."""
        if not self.share:
            return
        keys, order = table.keys()[table.filled].sort()
        self.keys = keys
        first, second = (side[table.filled][order] for side in log_probs)
        self.past = first, second

    def state_dict(self) -> dict[str, Tensor]:
        """What it remembers, to go on from later; nothing where it has no memory."""
        if not self.share:
            return {}
        return {"keys": self.keys, "forth": self.past[0], "back": self.past[1]}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved state.

        Raises:
            ValueError: it is none of a memory.
        """
        if not self.share:
            return
        keys, past = state["keys"], (state["forth"], state["back"])
        if keys.dtype != torch.int64 or any(side.shape != (len(keys),) for side in past):
            raise ValueError("what it remembers of pairs is not of one length")
        self.keys, self.past = keys, past


def _moved(sides: Sides, like: Tensor) -> Sides:
    return sides[0].to(like), sides[1].to(like)
