"""The margin loss against a loop over pairs."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from emea.encoders.kernels.margin_loss import margin_loss


def slow_loss(distances: Tensor, picked: Tensor | None, num_true: int, margin: float) -> Tensor:
    size = (len(distances) - num_true) // 2
    total = distances.new_zeros(())
    for pair in range(2 * size):
        link = pair % size
        place = link % num_true if picked is None else int(picked[link])
        total = total + torch.relu(margin + distances[place] - distances[num_true + pair])
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
from emea.encoders.kernels import sparse_kernels
sparse_kernels.usable = lambda _: True
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
def test_on_a_gpu(cuda: torch.device, num_true: int, size: int, is_picked: bool) -> None:
    check(str(cuda), num_true, size, is_picked)
