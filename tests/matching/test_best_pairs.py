"""Vectors in 8-bit integers, compared with their products in floating point."""

import torch

from emea.matching.best_pairs import ALIGNED, rounded, unit_length


def test_rounded_vectors_have_nearly_the_same_products() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (
        torch.nn.functional.normalize(torch.randn(size, 100, generator=generator))
        for size in (30, 50)
    )
    rows, columns = rounded(first), rounded(second)
    assert rows.shape[1] % ALIGNED == 0
    products = rows.long() @ columns.long().T * unit_length(100) ** 2
    assert torch.allclose(products.float(), first @ second.T, rtol=0, atol=0.01)
