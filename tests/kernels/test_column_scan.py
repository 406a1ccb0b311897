"""The scan of scores, compared with loops; the GPU's kernel, compared with torch."""

import math
from collections.abc import Callable

import pytest
import torch

from emea.kernels.column_scan import GROUP, scan


@pytest.mark.parametrize("num_columns", [1, GROUP, GROUP + 1, 3 * GROUP - 1])
def test_it_equals_a_loop(num_columns: int) -> None:
    generator = torch.Generator().manual_seed(num_columns)
    # columns after the last offset are ignored
    dots = torch.randn(4, num_columns + 3, generator=generator).double()
    offsets = torch.rand(num_columns, generator=generator).double()
    maxima, log_mass = scan(dots, offsets, 2.0, 3.0)
    for row in range(4):
        scores = [
            2.0 * float(dots[row, column]) - float(offsets[column])
            for column in range(num_columns)
        ]
        best = [
            max(scores[start : start + GROUP]) for start in range(0, num_columns, GROUP)
        ]
        mass = math.log(sum(math.exp(3.0 * score) for score in scores))
        assert maxima[row].tolist() == pytest.approx(best)
        assert float(log_mass[row]) == pytest.approx(mass)
    maxima_only, zeros = scan(dots, offsets, 2.0, None)
    assert torch.equal(maxima_only, maxima)
    assert not zeros.any()


INTERPRETED = """
import torch
from emea.kernels.column_scan import GROUP, torch_scan
from emea.kernels.triton_scores import TILE, scan
torch.manual_seed(0)
for num_columns in (40, TILE, TILE + 70):
    dots, offsets = torch.randn(5, num_columns + 3), torch.rand(num_columns)
    for sharpness in (None, 3.0):
        expected = torch_scan(dots, offsets, 2.0, sharpness)
        found = scan(dots, offsets, 2.0, sharpness, GROUP)
        torch.testing.assert_close(found, expected)
"""


def test_the_kernel_in_an_interpreter(interpreted: Callable[..., None]) -> None:
    interpreted(INTERPRETED)
