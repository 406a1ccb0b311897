"""Byte dropout: share, scale, seed and mode."""

import pytest
import torch

from emea.kernels.dropout import ByteDropout, random_bytes


@pytest.mark.parametrize("share", [0.001, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_share_and_expectation(share: float) -> None:
    torch.manual_seed(0)
    values = torch.ones(400, 500)
    dropped = ByteDropout(share)(values)
    rounded = max(1, round(256 * (1 - share))) / 256
    # four standard deviations of a mean of 200,000 draws
    slack = 4 * (rounded * (1 - rounded) / values.numel()) ** 0.5
    assert float((dropped != 0).float().mean()) == pytest.approx(
        rounded, abs=slack + 1e-9
    )
    assert float(dropped.mean()) == pytest.approx(1, abs=slack / rounded + 1e-6)


def test_kept_elements_are_scaled_by_the_rounded_share() -> None:
    torch.manual_seed(0)
    values = torch.randn(50, 7, dtype=torch.float64)
    dropped = ByteDropout(0.3)(values)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], values[kept] * 256 / 179)


def test_gradient_passes_through_the_kept_elements_alone() -> None:
    torch.manual_seed(0)
    values = torch.ones(100, requires_grad=True)
    dropped = ByteDropout(0.5)(values)
    dropped.sum().backward()
    assert values.grad is not None
    assert torch.equal(values.grad, dropped.detach())


def test_elements_are_dropped_independently() -> None:
    torch.manual_seed(0)
    kept = (ByteDropout(0.5)(torch.ones(20_000, 8)) != 0).double()
    correlation = torch.corrcoef(kept.T) - torch.eye(8)
    assert correlation.abs().max() < 0.04
    again = (ByteDropout(0.5)(torch.ones(20_000, 8)) != 0).double()
    assert (
        abs(float(torch.corrcoef(torch.stack([kept.ravel(), again.ravel()]))[0, 1]))
        < 0.02
    )


def test_evaluation_and_share_zero_change_nothing() -> None:
    values = torch.randn(10, 10)
    assert torch.equal(ByteDropout(0.9).eval()(values), values)
    assert torch.equal(ByteDropout(0.0)(values), values)


def test_random_bytes_are_uniform() -> None:
    torch.manual_seed(0)
    counts = torch.bincount(random_bytes(256_000).long(), minlength=256)
    # chi squared with 255 degrees of freedom: mean 255, deviation 22.6
    assert float(((counts - 1000) ** 2 / 1000).sum()) < 255 + 5 * 22.6


@pytest.mark.gpu
def test_dropout_on_cuda(cuda: torch.device) -> None:
    torch.manual_seed(0)
    dropped = ByteDropout(0.3)(torch.ones(400, 500, device=cuda))
    assert float((dropped == 0).float().mean()) == pytest.approx(0.3, abs=0.005)
    assert float(dropped.max()) == pytest.approx(1 / 0.7)
