"""The choice of kernels: torch's operations, or compiled kernels where they support the device.

Each operation of this package has a form with torch's operations, which is its specification. It
runs where numba or Triton is not installed, and with ``trainer.kernels=torch``, which shows whether
a problem comes from a compiled kernel. Only the modules of this package ask which form to use.
"""

import functools
import importlib.util
import logging
from typing import Literal

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

LEAST_OPERATIONS = 2**18
"""Shorter loops are left to torch, where its results are equal or differ by rounding only: a loop
takes up to a second to compile, more than small graphs save by it."""


class _Switch:
    """Holds which kernels may be used, once per process."""

    allows_compiled = True


def use_kernels(choice: str, device: torch.device) -> None:
    """Choose the kernels of all further computations.

    Args:
        choice: ``auto`` uses compiled kernels where they support a tensor, ``torch`` nowhere.
        device: The device of the run. A warning says if it has no compiled kernels.
    """
    _Switch.allows_compiled = choice == "auto"
    if choice == "auto" and device.type == "cuda" and not _is_installed("triton"):
        logger.warning(
            "Triton is not installed. Training on the GPU uses torch's operations without CUDA "
            "graphs, which takes several times as long."
        )


def kernels_of(device: torch.device) -> Literal["torch", "numba", "triton"]:
    """Return which kernels are used on a device."""
    if _Switch.allows_compiled and device.type == "cpu" and _is_installed("numba"):
        return "numba"
    if _Switch.allows_compiled and device.type == "cuda" and _is_installed("triton"):
        return "triton"
    return "torch"


def uses_numba(values: Tensor, num_operations: int | None = None) -> bool:
    """Return whether compiled loops process this tensor.

    Args:
        values: A tensor that the loop reads.
        num_operations: Approximate number of operations of the loop. Short loops are not worth
            their compilation. ``None`` for a loop that all runs on a CPU need.
    """
    is_long = num_operations is None or num_operations >= LEAST_OPERATIONS
    return is_long and kernels_of(values.device) == "numba"


def uses_numba_in_training(values: Tensor) -> bool:
    """Return whether compiled loops of training steps process this tensor.

    They need single precision, and their results differ by rounding from those of torch. So all
    sizes use the same form.
    """
    return values.dtype == torch.float32 and uses_numba(values)


def uses_triton(values: Tensor) -> bool:
    """Return whether Triton kernels, which need single precision, process this tensor."""
    return values.dtype == torch.float32 and kernels_of(values.device) == "triton"


def uses_triton_sums(values: Tensor) -> bool:
    """Return whether Triton kernels may add up this tensor: the order of their sums varies."""
    return uses_triton(values) and not torch.are_deterministic_algorithms_enabled()


def can_capture() -> bool:
    """Return whether a step on a GPU can become a CUDA graph.

    Some of torch's operations that replace Triton kernels wait for the device, which ends a
    capture.
    """
    return _Switch.allows_compiled and _is_installed("triton")


@functools.cache
def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
