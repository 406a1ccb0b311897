"""The device of a run, its memory and its allocator."""

import contextlib
import ctypes
import gc
import os
import resource
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import torch

from emea.errors import ConfigError

GLIBC = "libc.so.6"
_M_MMAP_MAX, _M_TRIM_THRESHOLD = -4, -1

_JOBS = count()
"""Counts the jobs of the process that have started."""


def choose_device(accelerator: str) -> torch.device:
    """Return the device for an accelerator setting."""
    if accelerator == "gpu" and not torch.cuda.is_available():
        raise ConfigError(
            "trainer=gpu needs a CUDA device, and none was found. Use trainer=cpu."
        )
    use_gpu = accelerator in ("auto", "gpu") and torch.cuda.is_available()
    return torch.device("cuda" if use_gpu else "cpu")


@contextlib.contextmanager
def deterministic_mode(wanted: bool) -> Iterator[None]:
    """Use deterministic kernels; torch raises an error where none exists."""
    if not wanted:
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    # cuBLAS reads it only at its first use in a process
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=only_warned)


def keep_freed_memory() -> None:
    """Let the C allocator keep the memory that a step frees, for the next step.

    By default glibc returns every large block to the kernel and requests it again page by page. On
    a CPU this took half of the time of a step. Other C libraries are not changed.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(GLIBC)
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, -1)


def forget_peak_memory(device: torch.device) -> None:
    """Reset the peak memory, because several jobs of a sweep may share one process."""
    if next(_JOBS):  # do not count memory of earlier jobs
        gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(GLIBC).malloc_trim(0)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb(device: torch.device) -> float:
    """Return the peak memory of the run: that of the GPU if it used one, else of the process."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device) / 2**20)
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def memory_in_use(device: torch.device) -> float:
    """Return the bytes that the run uses already: those of the process, or of the GPU."""
    if device.type == "cuda":
        return float(torch.cuda.memory_allocated(device))
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def available_memory(device: torch.device) -> float | None:
    """Return the bytes that the process can still get; ``None`` if they are unknown."""
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
        return float(
            free
            + torch.cuda.memory_reserved(device)
            - torch.cuda.memory_allocated(device)
        )
    return min(_limits(), default=None)


def _limits() -> Iterator[float]:
    """Yield what the machine, its container and the limits of the process leave."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        (line,) = [line for line in lines if line.startswith("MemAvailable:")]
        yield 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        group = Path("/sys/fs/cgroup")
        most, used = (
            (group / f"memory.{name}").read_text().strip()
            for name in ("max", "current")
        )
        stat = (
            line.split() for line in (group / "memory.stat").read_text().splitlines()
        )
        cached = next(
            (int(value) for name, value in stat if name == "inactive_file"), 0
        )
        if most != "max":
            yield float(int(most) - int(used) + cached)
    except (OSError, ValueError):
        pass
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    if soft != resource.RLIM_INFINITY:
        try:
            size = int(Path("/proc/self/statm").read_text().split()[0])
        except OSError:
            return
        yield float(soft - size * os.sysconf("SC_PAGE_SIZE"))
