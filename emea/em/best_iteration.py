"""The best iteration of a run by its validation links: when to stop, and what to answer with."""

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

TENSORS, PLAIN = "best.", "best"
"""Names of the state in a checkpoint: the beginning of those of tensors, and that of the rest."""


class BestIteration:
    """Follows the MRR on the validation links, and keeps the state of the iteration with the best.

    An iteration is kept as the state from which it can be computed again: the weights after its
    fit, and the state of EM before its M-step. Computing it again leaves everything that later
    commands read (weights, rule weights and beliefs) as the iteration left it.

    Args:
        keeps: Whether the run answers with the best iteration, so that its state is kept.
        patience: Number of iterations without a better MRR after which EM stops; ``None`` means
            never.

    Attributes:
        iteration: Number of the best iteration; ``None`` before the first MRR.
        mrr: Its MRR.
        num_idle: Number of iterations since then.
        state: Its state by name; empty unless it is kept.
    """

    def __init__(self, keeps: bool = False, patience: int | None = None) -> None:
        self.keeps = keeps
        self.patience = patience
        self.iteration: int | None = None
        self.mrr = -1.0
        self.num_idle = 0
        self.state: dict[str, Any] = {}

    @property
    def is_used(self) -> bool:
        """Whether the run needs to know its best iteration."""
        return self.keeps or self.patience is not None

    @property
    def has_stopped_rising(self) -> bool:
        """Whether EM should stop, because the MRR did not rise for ``patience`` iterations."""
        return self.patience is not None and self.num_idle >= self.patience

    def follow(self, iteration: int, mrr: float, state: Mapping[str, Any]) -> None:
        """Compare an iteration with the best one so far.

        Args:
            iteration: Number of the iteration.
            mrr: MRR of its answer on the validation links; NaN without such links.
            state: State from which the iteration can be computed again.
        """
        if math.isnan(mrr):
            return
        self.num_idle += 1
        if mrr > self.mrr:
            self.iteration = iteration
            self.mrr = mrr
            self.num_idle = 0
            self.state = dict(state)

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and one dictionary of plain values; empty if it is not used."""
        if not self.is_used:
            return {}
        tensors = {}
        plain = {}
        for name, value in self.state.items():
            if isinstance(value, Tensor):
                tensors[f"{TENSORS}{name}"] = value
            else:
                plain[name] = value
        numbers = {
            "iteration": self.iteration,
            "mrr": self.mrr,
            "num_idle": self.num_idle,
        }
        return {PLAIN: {**numbers, "state": plain}, **tensors}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state, which also contains the state of other objects."""
        if not self.is_used:
            return
        saved = state[PLAIN]
        self.iteration = saved["iteration"]
        self.mrr = float(saved["mrr"])
        self.num_idle = int(saved["num_idle"])
        tensors = {
            name.removeprefix(TENSORS): value
            for name, value in state.items()
            if name.startswith(TENSORS)
        }
        self.state = {**saved["state"], **tensors}
