"""The number of threads of small computations on a CPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

SMALL_GRAPHS = 2_000
"""Entities of both graphs up to which one thread is used.

On free cores, two threads saved a fifth of the time of a small RREA run. If other processes use the
cores, the threads wait for each other at the end of every operation, and the run took one and a
half times as long.
"""


_before: ContextVar[int | None] = ContextVar("_before", default=None)


def available_threads() -> int:
    """Return torch's number of threads, also within ``one_thread``.

    Threads that wait without using a core, unlike those of torch, are useful for small graphs, too.
    """
    return _before.get() or torch.get_num_threads()


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Let torch compute with one thread within the context.

    Args:
        wanted: If false, the number of threads does not change.
    """
    before = torch.get_num_threads()
    if not wanted or before == 1:
        yield
        return
    torch.set_num_threads(1)
    token = _before.set(before)
    try:
        yield
    finally:
        _before.reset(token)
        torch.set_num_threads(before)
