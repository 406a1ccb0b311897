"""Exact products of vectors of 8-bit integers, where the processor has instructions for them."""

import functools
from typing import Any

import torch
from torch import Tensor

from emea.kernels import choice
from emea.kernels.numba_calls import arrays, score_loops

TORCH_INSTRUCTIONS = ("avx512_vnni", "avx_vnni", "amx_int8")
"""Processor features that make products of 8-bit integers exact and fast in torch."""

LOOP_INSTRUCTIONS = ("dot",)
"""Processor features that make them fast in the compiled loop: ARM's dot product."""


def write_products(rows: Tensor, columns: Tensor, out: Tensor) -> None:
    """Write the exact products of all pairs of vectors of 8-bit integers.

    Args:
        rows: ``[n, dim]``.
        columns: ``[m, dim]``.
        out: ``[n, m]`` 32-bit integers.
    """
    if _has(LOOP_INSTRUCTIONS) and choice.uses_numba(rows):
        score_loops().int8_products(*arrays(rows, columns), out.numpy())
    else:
        # torch's own product is the specification; it uses other instructions than the loop
        torch._int_mm(rows, columns.T, out=out)


def has_fast_int8() -> bool:
    """Return whether products of 8-bit integers are exact and fast on this processor."""
    if hasattr(torch, "_int_mm") and _has(TORCH_INSTRUCTIONS):
        return True
    return _has(LOOP_INSTRUCTIONS) and choice.uses_numba(torch.empty(0))


@functools.cache
def _has(features: tuple[str, ...]) -> bool:
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(map(capabilities.get, features))
