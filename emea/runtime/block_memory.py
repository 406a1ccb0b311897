"""The size of the blocks of a computation, and retries with smaller blocks."""

import errno
import gc
import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

LEAST_SHARE = 2**-10
"""Blocks of this share need hardly any memory; smaller ones would not help."""

OUT_OF_MEMORY_TEXTS = (
    "out of memory",  # CUDA, its driver, HIP, XPU, MPS
    "can't allocate memory",  # torch's CPU allocator with posix_memalign (x86)
    "not enough memory",  # torch's CPU allocator with mimalloc (ARM, Windows)
    "cannot allocate memory",  # the system's text for ENOMEM, as in torch's mmap errors
    "bad_alloc",  # the C++ standard library
    "status_alloc_failed",  # cuBLAS, cuSOLVER, cuDNN and MKL's sparse products
    "resource allocation failed",  # cuSPARSE
    "insufficient resources",  # cuSPARSE
)
"""Lower-case parts of the messages of a ``RuntimeError``, which libraries raise without a type."""


class _Blocks:
    """Holds the size of blocks relative to the usual size, once per process."""

    share = 1.0


def limit_blocks(share: float) -> None:
    """Set the size of all further blocks to this share of their usual size."""
    _Blocks.share = share


def block_budget(usual: Mapping[str, int], device: torch.device) -> int:
    """Return how much a block may hold, in the unit of ``usual`` (bytes or rows).

    Args:
        usual: The usual size per type of device; types without an entry use the one of ``cpu``.
        device: The device of the block.
    """
    return max(1, int(usual.get(device.type, usual["cpu"]) * _Blocks.share))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether the error says that an allocation failed, on any device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if not isinstance(error, RuntimeError):
        return False
    message = str(error).lower()
    return any(text in message for text in OUT_OF_MEMORY_TEXTS)


def in_smaller_blocks(function: Callable[P, T]) -> Callable[P, T]:
    """Retry a function with half-size blocks whenever memory runs out, as long as that can help.

    The function must compute in blocks of `block_budget` and have no side effects when it fails.
    The memory of a failed attempt is freed before the next one.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        while True:
            try:
                return function(*args, **kwargs)
            except (RuntimeError, MemoryError, OSError) as error:
                if not is_out_of_memory(error) or _Blocks.share <= LEAST_SHARE:
                    raise
            # outside of the handler: the error's traceback keeps the attempt's tensors alive
            _shrink()

    return call


def _shrink() -> None:
    _Blocks.share /= 2
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    logger.warning(
        "Out of memory: retrying with half-size blocks. "
        "Set trainer.block_memory=%g to start with this size.",
        _Blocks.share,
    )
