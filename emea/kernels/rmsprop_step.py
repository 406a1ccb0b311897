"""A step of RMSprop; torch's own step is the specification."""

from typing import Any

import torch
from torch import Tensor

from emea.kernels import choice


@torch.no_grad()
def fused_step(optimiser: torch.optim.RMSprop) -> bool:
    """Update all parameters that have a gradient, on CUDA with one kernel for each.

    Returns:
        Whether the parameters were updated. Otherwise, torch's own step must do so.
    """
    updated = [
        (parameter, group)
        for group in optimiser.param_groups
        for parameter in group["params"]
        if parameter.grad is not None
    ]
    if not all(choice.uses_triton(parameter) for parameter, _ in updated):
        return False
    for parameter, group in updated:
        _update(parameter, optimiser.state[parameter], group)
    return True


def _update(parameter: Tensor, state: dict[str, Any], settings: dict[str, Any]) -> None:
    """Update one parameter and the mean of its squared gradients."""
    from emea.kernels import triton_losses  # torch may come without Triton

    if not state:
        state["step"] = torch.zeros((), device=parameter.device)
        state["square_avg"] = torch.zeros_like(parameter)
    assert parameter.grad is not None
    triton_losses.rmsprop(
        parameter,
        parameter.grad.contiguous(),
        state["square_avg"],
        rate=settings["lr"],
        smoothing=settings["alpha"],
        epsilon=settings["eps"],
    )
