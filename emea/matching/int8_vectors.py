"""Unit vectors in 8-bit integers, and their exact products."""

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from emea.matching import compiled

LARGEST = 127
"""Largest 8-bit coordinate."""

WIDTH = 4.5
"""Standard deviations of a coordinate that 8 bits represent; larger coordinates are cut off."""

TORCH_INSTRUCTIONS = ("avx512_vnni", "avx_vnni", "amx_int8")
"""Processor features that make products of 8-bit integers exact and fast in torch."""

LOOP_INSTRUCTIONS = ("dot",)
"""Processor features that make them fast in the compiled loop: ARM's dot product."""

ALIGNED = 16
"""The number of coordinates is a multiple of this, filled up with zeros."""


ROWS_AT_A_TIME = 2**14
"""Vectors that are rounded at a time."""


@functools.cache
def _has(features: tuple[str, ...]) -> bool:
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(map(capabilities.get, features))


def has_fast_int8() -> bool:
    """Return whether products of 8-bit integers are exact and fast on this processor."""
    if hasattr(torch, "_int_mm") and _has(TORCH_INSTRUCTIONS):
        return True
    return _has(LOOP_INSTRUCTIONS) and compiled.usable(torch.empty(0))


class RoundedVectors(NamedTuple):
    """Holds unit vectors in 8-bit integers.

    Args:
        values: ``[n, aligned dim]`` coordinates after a rotation, in units of ``step``.
        errors: ``[n]`` distance of each vector from its rounded one.
        step: Length of the unit.
    """

    values: Tensor
    errors: Tensor
    step: float


def rounded(vectors: Tensor) -> RoundedVectors:
    """Return unit vectors in 8-bit integers; coordinates out of their range are cut off.

    The vectors are rotated at random, so that all coordinates have a similar range. The rotation
    depends on the number of coordinates only.

    Args:
        vectors: ``[n, dim]`` unit vectors.
    """
    dim = vectors.shape[1]
    generator = torch.Generator().manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(dim, dim, generator=generator)).Q
    # the coordinates of a rotated unit vector have the standard deviation dim ** -0.5
    step = WIDTH / (LARGEST * dim**0.5)
    rotation = torch.nn.functional.pad(rotation / step, (0, -dim % ALIGNED))
    values = torch.empty(len(vectors), rotation.shape[1], dtype=torch.int8)
    errors = torch.empty(len(vectors))
    for first in range(0, len(vectors), ROWS_AT_A_TIME):
        part = slice(first, first + ROWS_AT_A_TIME)
        exact = vectors[part].float() @ rotation
        values[part] = near = exact.round().clamp_(-LARGEST, LARGEST)
        errors[part] = exact.sub_(near).norm(dim=1) * step
    return RoundedVectors(values, errors, step)


def write_products(rows: Tensor, columns: Tensor, out: Tensor) -> None:
    """Write the exact products of all pairs of vectors of 8-bit integers.

    Args:
        rows: ``[n, dim]``.
        columns: ``[m, dim]``.
        out: ``[n, m]`` 32-bit integers.
    """
    if _has(LOOP_INSTRUCTIONS) and compiled.usable(rows):
        compiled.int8_products(rows, columns, out)
    else:
        torch._int_mm(rows, columns.T, out=out)
