"""Row distances against a loop, and their gradient against finite differences."""

import pytest
import torch
from torch import Tensor

from emea.encoders.kernels import pair_distance
from emea.encoders.kernels.pair_distance import pair_distances

FIRST = torch.tensor([0, 1, 1, 4, 2, 2, 3])
SECOND = torch.tensor([1, 0, 3, 4, 0, 0, 1])


def random_rows(seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(5, 3, dtype=torch.float64, generator=generator)


@pytest.fixture(params=[1, 2, 3, 7, 100])
def chunked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Chunks shorter than, as long as and longer than the list of pairs."""
    monkeypatch.setattr(pair_distance, "ROWS_PER_CHUNK", request.param)
    return int(request.param)


@pytest.mark.usefixtures("chunked")
def test_distances() -> None:
    rows = random_rows()
    expected = [
        sum(abs(float(rows[a, d]) - float(rows[b, d])) for d in range(3))
        for a, b in zip(FIRST, SECOND, strict=True)
    ]
    assert pair_distances(rows, FIRST, SECOND).tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.usefixtures("chunked")
def test_gradient_away_from_ties() -> None:
    apart = FIRST != SECOND
    rows = random_rows().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda rows: pair_distances(rows, FIRST[apart], SECOND[apart]), (rows,)
    )


@pytest.mark.usefixtures("chunked")
def test_gradient_at_ties_is_zero() -> None:
    rows = torch.zeros(5, 3, dtype=torch.float64).requires_grad_()
    pair_distances(rows, FIRST, SECOND).sum().backward()
    assert rows.grad is not None
    assert not rows.grad.any()


def test_pairs_without_gradient_are_skipped(chunked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.tensor([0.0, 2.0, 0.0, 0.0, -1.0, 0.0, 0.5], dtype=torch.float64)
    rows = random_rows().requires_grad_()
    distances = pair_distances(rows, FIRST, SECOND)
    differences = pair_distance._differences
    worked_on: list[int] = []

    def recorded(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
        worked_on.extend(first.tolist())
        assert len(first) <= chunked
        return differences(rows, first, second)

    monkeypatch.setattr(pair_distance, "_differences", recorded)
    distances.backward(weights)
    assert worked_on == [1, 2, 3]

    copy = rows.detach().clone().requires_grad_()
    ((copy[FIRST] - copy[SECOND]).abs().sum(1) * weights).sum().backward()
    torch.testing.assert_close(rows.grad, copy.grad, rtol=0, atol=1e-12)


def test_gradient_that_is_zero_throughout() -> None:
    rows = random_rows().requires_grad_()
    (pair_distances(rows, FIRST, SECOND) * 0).sum().backward()
    assert rows.grad is not None
    assert not rows.grad.any()


def test_no_pairs() -> None:
    rows = random_rows().requires_grad_()
    none = torch.zeros(0, dtype=torch.int64)
    distances = pair_distances(rows, none, none)
    assert distances.shape == (0,)
    distances.sum().backward()
    assert rows.grad is not None
    assert not rows.grad.any()


def test_rows_are_left_as_they_were() -> None:
    rows = random_rows().requires_grad_()
    before = rows.detach().clone()
    pair_distances(rows, FIRST, SECOND).sum().backward()
    assert torch.equal(rows, before)


@pytest.mark.parametrize("chunk", [3, 100])
def test_single_precision_agrees_with_double(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single precision adds up rows with other operations than double precision."""
    monkeypatch.setattr(pair_distance, "ROWS_PER_CHUNK", chunk)
    weights = torch.tensor([1.0, 2.0, 0.0, 3.0, -1.0, 0.25, 0.5])
    found = []
    for dtype in (torch.float32, torch.float64):
        rows = random_rows().float().to(dtype).requires_grad_()
        distances = pair_distances(rows, FIRST, SECOND)
        (distances * weights.to(dtype)).sum().backward()
        assert rows.grad is not None
        found.append((distances.detach().double(), rows.grad.double()))
    for single, double in zip(*found, strict=True):
        torch.testing.assert_close(single, double, rtol=0, atol=32 * torch.finfo().eps)


def test_no_active_pair_has_no_gradient_in_single_precision() -> None:
    rows = random_rows().float().requires_grad_()
    (pair_distances(rows, FIRST, SECOND) * 0).sum().backward()
    assert rows.grad is not None and not rows.grad.any()
