"""How large the blocks of a computation are, and what happens where memory is short."""

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
"""Blocks this small take no memory worth mentioning: whoever still has none must have less data."""

CPU_MESSAGE = "can't allocate memory"
"""How torch words on a CPU what has a type of its own on a GPU."""


class _Blocks:
    """Size of blocks relative to the usual; one for the process, as its memory is."""

    share = 1.0


def limit_blocks(share: float) -> None:
    """Let blocks have this share of their usual size from now on."""
    _Blocks.share = share


def block_budget(usual: Mapping[str, int], device: torch.device) -> int:
    """What a block may hold.

    Args:
        usual: per kind of device, that of a CPU for all others; bytes, rows or whatever it is.
        device: where the block is.
    """
    return max(1, int(usual.get(device.type, usual["cpu"]) * _Blocks.share))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, on whatever device."""
    kinds = (MemoryError, torch.cuda.OutOfMemoryError)
    return isinstance(error, kinds) or CPU_MESSAGE in str(error)


def in_smaller_blocks(function: Callable[P, T]) -> Callable[P, T]:
    """Call again with blocks half as large whenever memory runs out, as long as that can help.

    For functions that compute in blocks of `block_budget` and leave nothing behind when they
    fail. What a failed attempt had made is freed before the next.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        while True:
            try:
                return function(*args, **kwargs)
            except (RuntimeError, MemoryError) as error:
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
        "out of memory: going on with blocks of %g of their usual size; "
        "trainer.block_memory=%g begins with such",
        _Blocks.share,
        _Blocks.share,
    )
