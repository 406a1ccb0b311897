"""RMSprop in one pass over the parameters."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from emea.runtime import kernels


class RMSprop(torch.optim.RMSprop):
    """Implements torch's RMSprop; on CUDA, one kernel updates each parameter.

    On CUDA, torch's own step makes five passes over parameters, gradients and squares.

    Args:
        params: Parameters to update.
        lr: Learning rate.
        alpha: Share of the mean square that each step keeps.
        eps: Number that is added to the root of the mean square.
    """

    def __init__(self, params: Any, lr: float, alpha: float, eps: float) -> None:
        super().__init__(params, lr=lr, alpha=alpha, eps=eps)

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        with_grad = [
            p for group in self.param_groups for p in group["params"] if p.grad is not None
        ]
        if closure is not None or not all(map(kernels.uses_triton, with_grad)):
            loss: float | None = super().step(closure)
            return loss
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return None

    @torch.no_grad()
    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), device=parameter.device)
            state["square_avg"] = torch.zeros_like(parameter)
        assert parameter.grad is not None
        from emea.encoders.kernels import triton_losses  # torch may come without Triton

        triton_losses.rmsprop(
            parameter,
            parameter.grad.contiguous(),
            state["square_avg"],
            group["lr"],
            group["alpha"],
            group["eps"],
        )
