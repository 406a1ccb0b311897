"""Unit rows and their gradient against double precision."""

from collections.abc import Callable

import pytest
import torch

from emea.encoders.kernels.unit_rows import unit_rows

SHAPES = [(1, 1), (3, 5), (9, 100), (17, 128)]


def check(device: str, num_rows: int, dim: int) -> None:
    torch.manual_seed(num_rows)
    rows, weights = torch.randn(2, num_rows, dim).double()
    rows[0] *= 1e-14  # shorter than the least length
    leaf = rows.clone().requires_grad_()
    lengths = leaf.square().sum(1, keepdim=True).sqrt().clamp(min=1e-12)
    expected = leaf / lengths
    (gradient,) = torch.autograd.grad((weights * expected).sum(), leaf)
    single = rows.float().to(device).requires_grad_()
    found = unit_rows(single)
    (of_rows,) = torch.autograd.grad((weights.float().to(device) * found).sum(), single)
    torch.testing.assert_close(found.double().cpu(), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(of_rows.double().cpu(), gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("num_rows", "dim"), SHAPES)
def test_rows_and_gradient(num_rows: int, dim: int) -> None:
    check("cpu", num_rows, dim)


def test_nan_is_not_hidden() -> None:
    assert unit_rows(torch.tensor([[1.0, float("nan")]])).isnan().all()


INTERPRETED = """
import runpy
from emea.runtime import kernels
kernels.uses_triton = lambda _: True
tests = runpy.run_path({path!r})
for shape in tests["SHAPES"]:
    tests["check"]("cpu", *shape)
tests["test_nan_is_not_hidden"]()
"""


def test_the_kernels_in_an_interpreter(interpreted: Callable[..., None]) -> None:
    interpreted(INTERPRETED.format(path=__file__))


@pytest.mark.gpu
@pytest.mark.parametrize(("num_rows", "dim"), [*SHAPES, (3000, 100)])
def test_on_a_gpu(cuda: torch.device, num_rows: int, dim: int) -> None:
    check(str(cuda), num_rows, dim)
