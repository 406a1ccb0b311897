"""Scores of single pairs on a GPU, compared with sums in double precision."""

from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import normalize

from emea.matching.similarity import Similarity

INTERPRETED = """
import torch
from emea.kernels.triton_scores import pair_dots
torch.manual_seed(0)
for dim in (1, 37, 128, 300):
    first, second = torch.randn(20, dim), torch.randn(30, dim)
    second[20:] = second[:10]
    for num_pairs in (0, 1, 16, 45):
        rows, columns = torch.randint(20, (num_pairs,)), torch.randint(10, (num_pairs,))
        found = pair_dots(first, second, rows, columns)
        expected = (first[rows].double() * second[columns].double()).sum(1)
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-4)
        assert torch.equal(pair_dots(first, second, rows, columns + 20), found)
        some = slice(num_pairs // 3, None)
        assert torch.equal(pair_dots(first, second, rows[some], columns[some]), found[some])
"""


def test_the_kernel_in_an_interpreter(interpreted: Callable[..., None]) -> None:
    interpreted(INTERPRETED)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [1, 37, 600])
def test_on_a_gpu(cuda: torch.device, dim: int) -> None:
    generator = torch.Generator().manual_seed(dim)
    source, target = (
        normalize(torch.randn(500, dim, generator=generator)).to(cuda) for _ in range(2)
    )
    target[250:] = target[:250]
    offsets = torch.rand(2, 500, generator=generator).to(cuda)
    offsets[1, 250:] = offsets[1, :250]
    similarity = Similarity(source, target, *offsets, scale=2.0)
    rows = torch.randint(500, (10_001,), generator=generator).to(cuda)
    columns = torch.randint(250, (10_001,), generator=generator).to(cuda)
    found = similarity.of_pairs(rows, columns)
    dots = (source[rows].double() * target[columns].double()).sum(1)
    expected = 2 * dots - offsets[0][rows] - offsets[1][columns]
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)
    # neither the number of pairs nor their places matter
    assert torch.equal(similarity.of_pairs(rows, columns + 250), found)
    order = torch.randperm(10_001, generator=generator).to(cuda)
    assert torch.equal(similarity.of_pairs(rows[order], columns[order]), found[order])
    for number in (0, 1, 7, 100):
        assert torch.equal(
            similarity.of_pairs(rows[:number], columns[:number]), found[:number]
        )
