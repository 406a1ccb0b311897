"""Checks of an encoder and of its losses during training, with errors for their author."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from emea.errors import ConfigError, DivergedError

LOSSES_SHOWN = 3
"""Losses before a NaN or infinite one that the error message shows."""

ADVICE = (
    "A smaller learning rate (model.optimizer.lr) or a larger model.optimizer.eps usually helps. "
    "If it happens at the start, check the first weights and the settings of model.objective."
)


def check_encoder(encoder: Any) -> None:
    """Check that an object is a module that can be called without arguments."""
    name = type(encoder).__name__
    if not isinstance(encoder, nn.Module):
        raise ConfigError(f"model.encoder must be a torch.nn.Module, got {name}.")
    try:
        inspect.signature(encoder.forward).bind()
    except TypeError as error:
        raise ConfigError(
            f"{name}.forward() must accept a call without arguments: {error}."
        ) from error


def check_rows(rows: Any, encoder: nn.Module, num_entities: int, step: int) -> None:
    """Check the output of an encoder.

    Args:
        rows: The output.
        encoder: The encoder.
        num_entities: Number of entities of both graphs.
        step: Number of optimisation steps so far.

    Raises:
        ConfigError: If the output is not a tensor with one embedding per entity.
        DivergedError: If some of the embeddings are NaN or infinite.
    """
    name = type(encoder).__name__
    fault = _fault(rows, num_entities)
    if fault is not None:
        raise ConfigError(
            f"{name}.forward() must return a floating-point tensor [num_entities, width], "
            f"here [{num_entities}, width], but it returned {fault}."
        )
    if not torch.isfinite(rows).all():
        raise DivergedError(
            f"{name}.forward() returned NaN or infinite embeddings after step {step}. {ADVICE}"
        )


def check_gradient(rows: Tensor, encoder: nn.Module) -> None:
    """Check that the output of an encoder in training depends on its weights, if it has any.

    Raises:
        ConfigError: If the output has no gradient.
    """
    is_constant = torch.is_grad_enabled() and not rows.requires_grad
    if is_constant and any(weights.requires_grad for weights in encoder.parameters()):
        raise ConfigError(
            f"{type(encoder).__name__}.forward() returned embeddings without a gradient, so its "
            "weights cannot be trained. Do not detach them."
        )


def loss_error(
    loss: float, step: int, earlier: Sequence[float], member: int | None
) -> DivergedError:
    """Return the error for a NaN or infinite loss.

    Args:
        loss: The loss.
        step: Number of its optimisation step in the run.
        earlier: The losses before it that are known, oldest first.
        member: The member of the ensemble whose loss it is; ``None`` for a single encoder.
    """
    name = "The loss" if member is None else f"The loss of encoder {member + 1}"
    shown = ", ".join(f"{value:.3g}" for value in earlier[-LOSSES_SHOWN:])
    after = f" after {shown}" if shown else ", its first step"
    return DivergedError(f"{name} became {loss} at step {step}{after}. {ADVICE}")


def _fault(rows: Any, num_entities: int) -> str | None:
    """Describe what is wrong with the type or shape of embeddings; ``None`` if they are valid."""
    if not isinstance(rows, Tensor):
        return f"a value of type {type(rows).__name__}"
    if not rows.is_floating_point() or rows.layout != torch.strided:
        sparse = "" if rows.layout == torch.strided else "sparse "
        return f"a {sparse}tensor of type {rows.dtype}"
    if rows.ndim != 2 or len(rows) != num_entities or not rows.shape[1]:
        return f"a tensor of shape {list(rows.shape)}"
    return None
