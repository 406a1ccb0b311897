"""Vectors that are rounded to TF32, so that the errors of their products are known."""

from typing import NamedTuple

import torch
from torch import Tensor

from emea.runtime.block_memory import block_budget

BLOCK_BYTES = {"cpu": 2**26, "cuda": 2**28}
"""Memory of the vectors that are rounded at a time, per type of device."""

DROPPED_BITS = 13
"""Bits of a single-precision number that TF32 does not have."""

ALIGNED = 8
"""The dimension is padded to a multiple of this, which tensor cores need."""

SPARE = 1 + 2**-10
"""Factor of lengths and errors, which covers the rounding of everything computed from them."""

LEAST_ERROR = 1e-30
"""Least error of a vector. A GPU may replace numbers below 1e-37 by 0."""


class TF32Vectors(NamedTuple):
    """Holds rounded vectors and bounds of their errors.

    Args:
        values: ``[n, padded_dim]`` rounded vectors, padded with zeros.
        lengths: ``[n]`` upper bounds of the lengths of the given vectors.
        errors: ``[n]`` upper bounds of the distances between given and rounded vectors.
    """

    values: Tensor
    lengths: Tensor
    errors: Tensor


def tf32_vectors(vectors: Tensor) -> TF32Vectors:
    """Round vectors of single precision to TF32."""
    num_vectors, dim = vectors.shape
    values = vectors.new_zeros(num_vectors, dim + -dim % ALIGNED)
    lengths, errors = vectors.new_empty(2, num_vectors)
    budget = block_budget(BLOCK_BYTES, vectors.device)
    size = max(1, budget // (vectors.element_size() * max(1, dim)))
    for start in range(0, num_vectors, size):
        part = slice(start, start + size)
        rounded = rounded_to_tf32(vectors[part])
        values[part, :dim] = rounded
        lengths[part] = SPARE * _lengths(vectors[part])
        # the difference is exact, because both numbers have the same leading bits
        errors[part] = (SPARE * _lengths(vectors[part] - rounded)).clamp(min=LEAST_ERROR)
    return TF32Vectors(values, lengths, errors)


def rounded_to_tf32(numbers: Tensor) -> Tensor:
    """Return the nearest numbers with 10 stored bits of the significand, for finite numbers."""
    bits: Tensor = numbers.contiguous().view(torch.int32) + 2 ** (DROPPED_BITS - 1)
    return bits.bitwise_and_(-(2**DROPPED_BITS)).view(torch.float32)


def _lengths(vectors: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float64)
    return lengths
