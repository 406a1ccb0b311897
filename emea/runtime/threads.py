"""The number of threads of computations on a CPU, and calls of compiled loops in threads."""

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

SMALL_GRAPHS = 2_000
"""Entities of both graphs up to which one thread is used.

On free cores, two threads saved a fifth of the time of a small RREA run. If other processes use the
cores, the threads wait for each other at the end of every operation, and the run took one and a
half times as long.
"""

MIN_INDICES = 10_000
"""Pairs below which a compiled loop uses one thread; it takes less than a millisecond."""

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


def index_ranges(size: int, num_ranges: int) -> list[tuple[int, int]]:
    """Return the first and the last index + 1 of ranges of about equal length."""
    ends = [size * part // num_ranges for part in range(num_ranges + 1)]
    return list(itertools.pairwise(ends))


def thread_ranges(size: int) -> list[tuple[int, int]]:
    """Return a range of indices for each thread; a single one if there are few indices."""
    return index_ranges(size, available_threads() if size >= MIN_INDICES else 1)


def in_threads(
    function: Callable[..., Any],
    calls: Sequence[Sequence[Any]],
    max_threads: int | None = None,
) -> list[Any]:
    """Call a compiled loop with each of the arguments, at the same time if there are threads.

    Args:
        function: A function that releases the interpreter lock.
        calls: Arguments of each call.
        max_threads: Largest number of threads; ``None``: as many as there are.

    Returns:
        The results in the order of the calls.
    """
    num_threads = min(len(calls), max_threads or available_threads())
    if num_threads <= 1:
        return [function(*call) for call in calls]
    threads = _threads(num_threads - 1)
    pending = [threads.submit(function, *call) for call in calls[1:]]
    return [function(*calls[0]), *(job.result() for job in pending)]


def in_ranges(function: Callable[..., Any], size: int, *given: Any) -> list[Any]:
    """Call a compiled loop on ranges of indices, a range for each thread.

    Args:
        function: A function that releases the interpreter lock. Its first arguments are the first
            index and the last index + 1.
        size: Number of all indices.
        *given: Its further arguments.

    Returns:
        The results in the order of the ranges.
    """
    return in_threads(function, [(*part, *given) for part in thread_ranges(size)])


@functools.cache
def _threads(number: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(number, thread_name_prefix="emea-kernel")


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_threads.cache_clear)
