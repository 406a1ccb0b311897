"""RMSprop in one pass over the parameters."""

from collections.abc import Callable
from typing import Any

import torch

from emea.encoders.settings import RMSpropSettings
from emea.kernels.rmsprop_step import fused_step


class RMSprop(torch.optim.RMSprop):
    """Implements torch's RMSprop; on CUDA, one kernel updates each parameter.

    On CUDA, torch's own step makes five passes over parameters, gradients and squares.

    Args:
        params: Parameters to update.
        lr: Learning rate.
        alpha: Share of the mean square that each step keeps.
        eps: Number that is added to the root of the mean square.
    """

    def __init__(
        self,
        params: Any,
        lr: float = RMSpropSettings.lr,
        alpha: float = RMSpropSettings.alpha,
        eps: float = RMSpropSettings.eps,
    ) -> None:
        super().__init__(params, lr=lr, alpha=alpha, eps=eps)

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        if closure is None and fused_step(self):
            return None
        loss: float | None = super().step(closure)
        return loss
