"""Sparse products and distances on CUDA, by Triton and by torch, against doubles on a CPU."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from emea.kernels.pair_distance import pair_distances
from emea.kernels.sparse_pattern import SparsePattern

DIMS = [1, 3, 100, 128, 200, 600, 1200]
NUM_ROWS, NUM_COLS, HUB_EDGES = 50, 40, 10_000
PACKAGE = Path(__file__).resolve().parents[2] / "emea"


def test_kernels_use_only_options_of_the_oldest_triton() -> None:
    """torch 2.4 comes with Triton 3.0, which cannot ignore only the alignment of a tensor."""
    sources = [path.read_text() for path in sorted(PACKAGE.rglob("triton_*.py"))]
    options = {
        name for text in sources for name in re.findall(r"@triton\.jit\((\w+)=", text)
    }
    assert options == {"do_not_specialize"}


def random_pattern(hub: bool) -> SparsePattern:
    """Rows of 0 to 40 edges, the first and last empty; with a hub, one row of 10,000."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 41, NUM_ROWS)
    counts[[0, -1]] = 0
    if hub:
        counts[7] = HUB_EDGES
    rows = np.repeat(np.arange(NUM_ROWS), counts)
    # the first and last column stay empty
    return SparsePattern(
        rows, rng.integers(1, NUM_COLS - 1, len(rows)), (NUM_ROWS, NUM_COLS)
    )


def assert_same(
    function: Callable[..., Tensor],
    on_cuda: Callable[..., Tensor],
    inputs: list[Tensor],
) -> None:
    """Values and gradients of both, the second in single precision on CUDA."""
    exact = [value.double().requires_grad_() for value in inputs]
    single = [value.float().cuda().requires_grad_() for value in inputs]
    expected, result = function(*exact), on_cuda(*single)
    assert result.is_cuda
    assert result.dtype == torch.float32
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    (expected * weights).sum().backward()
    (result * weights.cuda()).sum().backward()
    assert_near(result.detach(), expected.detach())
    for left, right in zip(single, exact, strict=True):
        assert left.grad is not None
        assert right.grad is not None
        assert_near(left.grad, right.grad)


def assert_near(result: Tensor, expected: Tensor) -> None:
    scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
    torch.testing.assert_close(
        result.double().cpu(), expected, rtol=0, atol=1e-5 * scale
    )


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda_kernels")
@pytest.mark.parametrize("hub", [False, True])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("function", ["weighted_sum", "pair_dots"])
def test_products(function: str, dim: int, hub: bool) -> None:
    torch.manual_seed(0)
    pattern, twin = random_pattern(hub), random_pattern(hub).cuda()
    first = (pattern.num_nonzeros,) if function == "weighted_sum" else (NUM_ROWS, dim)
    inputs = [torch.randn(*first), torch.randn(NUM_COLS, dim)]
    assert_same(getattr(pattern, function), getattr(twin, function), inputs)


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda_kernels")
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("num_pairs", [1, 8, 1001])
def test_pair_distances(dim: int, num_pairs: int) -> None:
    torch.manual_seed(0)
    # some pairs are an entity and itself, where the gradient is zero
    first, second = torch.randint(NUM_ROWS, (2, num_pairs))
    assert_same(
        lambda rows: pair_distances(rows, first, second),
        lambda rows: pair_distances(rows, first.cuda(), second.cuda()),
        [torch.randn(NUM_ROWS, dim)],
    )


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda_kernels")
def test_distances_with_gradients_that_are_zero() -> None:
    torch.manual_seed(0)
    rows = torch.randn(NUM_ROWS, 100)
    first, second = torch.randint(NUM_ROWS, (2, 300))
    weights = torch.relu(torch.randn(300))
    grads = []
    for device in ("cpu", "cuda"):
        leaf = rows.clone().to(device).requires_grad_()
        pair_distances(leaf, first.to(device), second.to(device)).backward(
            weights.to(device)
        )
        assert leaf.grad is not None
        grads.append(leaf.grad.cpu())
    torch.testing.assert_close(grads[1], grads[0], rtol=0, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda_kernels")
def test_pattern_without_nonzeros() -> None:
    none = np.zeros(0, dtype=np.int64)
    pattern, twin = (
        SparsePattern(none, none, (3, 2)),
        SparsePattern(none, none, (3, 2)).cuda(),
    )
    assert_same(
        pattern.weighted_sum, twin.weighted_sum, [torch.zeros(0), torch.randn(2, 4)]
    )
    assert_same(
        pattern.pair_dots, twin.pair_dots, [torch.randn(3, 4), torch.randn(2, 4)]
    )


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda_kernels")
def test_strided_operands() -> None:
    torch.manual_seed(0)
    pattern, twin = random_pattern(False), random_pattern(False).cuda()
    left, right = torch.randn(10, NUM_ROWS), torch.randn(10, NUM_COLS)
    assert_same(
        lambda left, right: pattern.pair_dots(left.T, right.T),
        lambda left, right: twin.pair_dots(left.T, right.T),
        [left, right],
    )
    values = torch.randn(pattern.num_nonzeros)
    assert_same(
        lambda values, right: pattern.weighted_sum(values, right.T).T,
        lambda values, right: twin.weighted_sum(values, right.T).T,
        [values, right],
    )


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda_kernels")
def test_row_softmax() -> None:
    torch.manual_seed(0)
    pattern, twin = random_pattern(True), random_pattern(True).cuda()
    assert_same(
        pattern.row_softmax, twin.row_softmax, [3 * torch.randn(pattern.num_nonzeros)]
    )
