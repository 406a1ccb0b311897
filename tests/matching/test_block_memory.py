"""Computations that run out of memory go on in smaller blocks."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from emea.matching import block_memory
from emea.matching.block_memory import (
    LEAST_SHARE,
    block_budget,
    in_smaller_blocks,
    is_out_of_memory,
    limit_blocks,
)
from emea.matching.candidates import top_candidates
from emea.matching.cosine import Cosine
from emea.matching.similarity import Similarity

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
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return whole(self, rows, columns)

    monkeypatch.setattr(Similarity, "scores", scores)
    return asked


def test_a_search_goes_on_with_blocks_that_fit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    generator = torch.Generator().manual_seed(0)
    source, target = torch.randn(2, 40, 8, generator=generator)
    similarity = Cosine()(source, target)
    expected = top_candidates(similarity, 3)
    asked = small_memory(monkeypatch, 10)
    # 40 rows of 40 scores fit: the first block is everything
    monkeypatch.setitem(sys.modules[Similarity.__module__].BLOCK_BYTES, "cpu", 40 * 40 * 4)
    with caplog.at_level(logging.WARNING, "emea"):
        found = top_candidates(similarity, 3)
    assert asked == [40, 20, 10, 10, 10, 10]
    assert torch.equal(found.targets, expected.targets)
    told = [record.getMessage() for record in caplog.records]
    assert [text.split("trainer.")[1] for text in told] == [
        "block_memory=0.5 begins with such",
        "block_memory=0.25 begins with such",
    ]
    asked.clear()
    top_candidates(similarity, 3)
    assert asked == [10, 10, 10, 10]  # the next computation has learnt from this one


def test_where_nothing_helps_the_error_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    small_memory(monkeypatch, 0)
    limit_blocks(2 * LEAST_SHARE)
    similarity = Cosine()(torch.eye(3), torch.eye(3))
    with pytest.raises(torch.cuda.OutOfMemoryError):
        top_candidates(similarity, 1)
    assert block_memory._Blocks.share == LEAST_SHARE


def test_other_errors_are_not_tried_again() -> None:
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
from emea.matching.block_memory import in_smaller_blocks, block_budget, _Blocks
resource.setrlimit(resource.RLIMIT_DATA, (3 * 2**30, 3 * 2**30))

@in_smaller_blocks
def filled():
    return len(torch.ones(block_budget({"cpu": 2**32}, torch.device("cpu")), dtype=torch.uint8))

print(filled(), _Blocks.share)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_a_real_lack_of_memory_is_understood() -> None:
    done = subprocess.run([sys.executable, "-c", REAL], capture_output=True, text=True, check=False)
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
def test_a_search_on_a_full_gpu_goes_on_with_blocks_that_fit(
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
    assert all("trainer.block_memory" in record.getMessage() for record in caplog.records)


def test_what_counts_as_a_lack_of_memory() -> None:
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"))
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
