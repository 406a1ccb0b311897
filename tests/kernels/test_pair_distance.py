"""Row distances and the margin loss against loops, and their gradients."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from emea.kernels import pair_distance
from emea.kernels.margin_loss import margin_loss
from emea.kernels.pair_distance import pair_distances

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
    assert pair_distances(rows, FIRST, SECOND).tolist() == pytest.approx(
        expected, abs=1e-12
    )


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


def test_pairs_without_gradient_are_skipped(
    chunked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_no_pairs() -> None:
    rows = random_rows().requires_grad_()
    none = torch.zeros(0, dtype=torch.int64)
    distances = pair_distances(rows, none, none)
    assert distances.shape == (0,)
    distances.sum().backward()
    assert rows.grad is not None
    assert not rows.grad.any()


@pytest.mark.usefixtures("each_kernels")
@pytest.mark.parametrize("chunk", [3, 100])
def test_single_precision_agrees_with_double(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def slow_loss(
    distances: Tensor, picked: Tensor | None, num_true: int, margin: float
) -> Tensor:
    size = (len(distances) - num_true) // 2
    total = distances.new_zeros(())
    for pair in range(2 * size):
        link = pair % size
        place = link % num_true if picked is None else int(picked[link])
        total = total + torch.relu(
            margin + distances[place] - distances[num_true + pair]
        )
    return total / size


def check(device: str, num_true: int, size: int, is_picked: bool) -> None:
    torch.manual_seed(num_true)
    picked = torch.randint(num_true, (size,)) if is_picked else None
    results = []
    for loss, dtype in ((slow_loss, torch.float64), (margin_loss, torch.float32)):
        torch.manual_seed(size)
        distances = torch.rand(num_true + 2 * size).to(device, dtype).requires_grad_()
        places = None if picked is None else picked.to(device)
        value = loss(distances, places, num_true, 0.2)
        (grad,) = torch.autograd.grad(3 * value, distances)
        results.append((value.detach().double().cpu(), grad.double().cpu()))
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


SIZES = [(1, 1), (4, 3), (3, 7), (5, 10)]


@pytest.mark.parametrize(("num_true", "size"), SIZES)
@pytest.mark.parametrize("is_picked", [False, True])
def test_loss_and_gradient(num_true: int, size: int, is_picked: bool) -> None:
    check("cpu", num_true, size, is_picked)


def test_nan_is_not_hidden() -> None:
    distances = torch.tensor([1.0, float("nan"), 2.0])
    assert margin_loss(distances, None, 1, 0.5).isnan()


INTERPRETED = """
import runpy
from emea.kernels import choice
choice.uses_triton = lambda _: True
tests = runpy.run_path({path!r})
for num_true, size in tests["SIZES"]:
    for is_picked in (False, True):
        tests["check"]("cpu", num_true, size, is_picked)
tests["test_nan_is_not_hidden"]()
"""


def test_the_kernel_in_an_interpreter(interpreted: Callable[..., None]) -> None:
    interpreted(INTERPRETED.format(path=__file__))


@pytest.mark.gpu
@pytest.mark.parametrize(("num_true", "size"), [*SIZES, (30, 700)])
@pytest.mark.parametrize("is_picked", [False, True])
def test_loss_on_a_gpu(
    cuda: torch.device, num_true: int, size: int, is_picked: bool
) -> None:
    check(str(cuda), num_true, size, is_picked)
