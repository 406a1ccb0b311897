"""Computations that run out of memory are retried in smaller blocks."""

import errno
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import Tensor

from emea.matching.candidates import top_candidates
from emea.matching.similarity import Cosine, Similarity
from emea.runtime import block_memory
from emea.runtime.block_memory import (
    LEAST_SHARE,
    block_budget,
    in_smaller_blocks,
    is_out_of_memory,
    limit_blocks,
)

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _usual_blocks() -> Iterator[None]:
    yield
    limit_blocks(1.0)


def test_the_budget_is_a_share_of_the_usual() -> None:
    usual = {"cpu": 100, "cuda": 800}
    assert block_budget(usual, CPU) == 100
    limit_blocks(0.25)
    assert block_budget(usual, CPU) == 25
    assert block_budget(usual, torch.device("cuda")) == 200
    assert block_budget({"cpu": 100}, torch.device("cuda")) == 25
    limit_blocks(1e-9)
    assert block_budget(usual, CPU) == 1


def small_memory(monkeypatch: pytest.MonkeyPatch, num_rows: int) -> list[int]:
    """Scores of more rows than this fail as they would on a GPU; the numbers asked for."""
    asked: list[int] = []
    whole = Similarity.scores

    def scores(self: Similarity, rows: Tensor, columns: Tensor | None = None) -> Tensor:
        asked.append(len(rows))
        if len(rows) > num_rows:
            raise torch.cuda.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 2.00 GiB"
            )
        return whole(self, rows, columns)

    monkeypatch.setattr(Similarity, "scores", scores)
    return asked


def test_a_search_continues_with_blocks_that_fit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    generator = torch.Generator().manual_seed(0)
    source, target = torch.randn(2, 40, 8, generator=generator)
    similarity = Cosine()(source, target)
    expected = top_candidates(similarity, 3)
    asked = small_memory(monkeypatch, 10)
    # 40 rows of 40 scores fit: the first block is everything
    monkeypatch.setitem(
        sys.modules[Similarity.__module__].BLOCK_BYTES, "cpu", 40 * 40 * 4
    )
    with caplog.at_level(logging.WARNING, "emea"):
        found = top_candidates(similarity, 3)
    assert asked == [40, 20, 10, 10, 10, 10]
    assert torch.equal(found.targets, expected.targets)
    warned = "Out of memory: retrying with half-size blocks. Set trainer.block_memory={} to start"
    assert [
        record.getMessage().split(" with this")[0] for record in caplog.records
    ] == [
        warned.format(0.5),
        warned.format(0.25),
    ]
    asked.clear()
    top_candidates(similarity, 3)
    assert asked == [10, 10, 10, 10]  # the next computation has learnt from this one


def test_where_nothing_helps_the_error_comes_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_memory(monkeypatch, 0)
    limit_blocks(2 * LEAST_SHARE)
    similarity = Cosine()(torch.eye(3), torch.eye(3))
    with pytest.raises(torch.cuda.OutOfMemoryError):
        top_candidates(similarity, 1)
    assert block_memory._Blocks.share == LEAST_SHARE


def test_other_errors_are_not_retried() -> None:
    calls = []

    @in_smaller_blocks
    def wrong() -> None:
        calls.append(1)
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        wrong()
    assert calls == [1]


REAL = """
import resource, torch
from emea.runtime.block_memory import in_smaller_blocks, block_budget, _Blocks
resource.setrlimit(resource.RLIMIT_DATA, (3 * 2**30, 3 * 2**30))

@in_smaller_blocks
def taken():
    return len(torch.empty(block_budget({"cpu": 2**32}, torch.device("cpu")), dtype=torch.uint8))

print(taken(), _Blocks.share)
"""


def test_more_than_a_machine_can_address_is_recognised() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(raised.value)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_a_real_lack_of_memory_is_recognised() -> None:
    done = subprocess.run(
        [sys.executable, "-c", REAL], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    size, share = done.stdout.split()
    assert float(share) in (0.5, 0.25)
    assert int(size) == 2**32 * float(share)


@contextmanager
def at_most(num_bytes: int, device: torch.device) -> Iterator[None]:
    """Let torch take this much more of a GPU's memory, and no more."""
    torch.cuda.empty_cache()
    whole = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(
        (torch.cuda.memory_reserved(device) + num_bytes) / whole
    )
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.mark.gpu
def test_a_search_on_a_full_gpu_continues_with_blocks_that_fit(
    cuda: torch.device, caplog: pytest.LogCaptureFixture
) -> None:
    generator = torch.Generator().manual_seed(0)
    source, target = torch.randn(2, 20_000, 16, generator=generator).to(cuda)
    similarity = Cosine()(source, target)
    expected = top_candidates(similarity, 3)
    with at_most(2**27, cuda), caplog.at_level(logging.WARNING, "emea"):
        found = top_candidates(similarity, 3)
    assert torch.equal(found.targets, expected.targets)
    assert block_memory._Blocks.share < 1
    assert all(
        "trainer.block_memory" in record.getMessage() for record in caplog.records
    )


def numpy_error() -> MemoryError:
    """Return what numpy raises, which is a private class."""
    with pytest.raises(MemoryError) as raised:
        np.empty(2**60, dtype=np.uint8)
    return raised.value


OUT_OF_MEMORY = {
    "Python": MemoryError(),
    "numpy": numpy_error(),
    "torch": torch.OutOfMemoryError("Tried to allocate 2.00 GiB"),
    "torch.cuda": torch.cuda.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB."
    ),
    "CPU, x86": RuntimeError(
        "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 4294967296 bytes. Error code 12 (Cannot allocate memory)"
    ),
    "CPU, ARM": RuntimeError(
        "[enforce fail at alloc_cpu.cpp:113] data. DefaultCPUAllocator: not enough memory: "
        "you tried to allocate 4294967296 bytes."
    ),
    "C++": RuntimeError("std::bad_alloc"),
    "CUDA": RuntimeError(
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronous"
    ),
    "CUDA driver": RuntimeError("CUDA driver error: out of memory"),
    "cuBLAS": RuntimeError(
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    ),
    "cuSOLVER": RuntimeError(
        "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`"
    ),
    "cuSPARSE": RuntimeError(
        "CUDA error: resource allocation failed when calling `cusparseCreate(handle)`"
    ),
    "MKL": RuntimeError(
        "MKL error: SPARSE_STATUS_ALLOC_FAILED when calling `mkl_sparse_s_mm`"
    ),
    "system": OSError(errno.ENOMEM, "Cannot allocate memory"),
}

OTHER_ERRORS = {
    "shapes": RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    "index": IndexError("index 5 is out of bounds for dimension 0 with size 5"),
    "launch": RuntimeError("CUDA error: too many resources requested for launch"),
    "access": RuntimeError("CUDA error: an illegal memory access was encountered"),
    "device": RuntimeError(
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate`"
    ),
    "disk": OSError(errno.ENOSPC, "No space left on device"),
    "quoted": ValueError("the study 'out of memory' does not exist"),
    "interrupt": KeyboardInterrupt(),
}


@pytest.mark.parametrize("error", OUT_OF_MEMORY.values(), ids=OUT_OF_MEMORY)
def test_every_wording_of_a_lack_of_memory_is_recognised_and_retried(
    error: Exception,
) -> None:
    errors = [error]

    @in_smaller_blocks
    def once_too_large() -> float:
        if errors:
            raise errors.pop()
        return block_memory._Blocks.share

    assert is_out_of_memory(error)
    assert once_too_large() == 0.5


@pytest.mark.parametrize("error", OTHER_ERRORS.values(), ids=OTHER_ERRORS)
def test_other_errors_are_not_taken_for_a_lack_of_memory(error: BaseException) -> None:
    assert not is_out_of_memory(error)
