"""Rows divided by their lengths, on a GPU in one kernel per direction."""

import functools
from typing import Any, cast

import torch
from torch import Tensor, nn

from emea.runtime import kernels

LEAST_LENGTH = 1e-12
"""Shorter rows are divided by this number instead of their length."""

ROWS_PER_TILE = 8
"""Rows that one program divides by their lengths."""


def unit_rows(rows: Tensor) -> Tensor:
    """Return the rows divided by their lengths, or by ``LEAST_LENGTH`` if they are shorter."""
    if not kernels.uses_triton(rows):
        return nn.functional.normalize(rows, eps=LEAST_LENGTH)
    return cast(Tensor, _UnitRows.apply(rows))  # type: ignore[no-untyped-call]


class _UnitRows(torch.autograd.Function):
    """Implements u = x / |x|, whose gradient is ``(g - (g.u) u) / |x|``."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        rows = rows.contiguous()
        units, lengths = torch.empty_like(rows), rows.new_empty(len(rows))
        _launch("unit_rows", rows, units, lengths)
        ctx.save_for_backward(units, lengths)
        return units

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        units, lengths = ctx.saved_tensors
        out = torch.empty_like(units)
        _launch("unit_rows_backward", units, lengths, grads[0].contiguous(), out)
        return out


def _launch(name: str, rows: Tensor, *rest: Tensor) -> None:
    num_rows, dim = rows.shape
    width = 1 << max(0, dim - 1).bit_length()
    constants = {"DIM": dim, "TILE": ROWS_PER_TILE, "WIDTH": width}
    grid = (max(1, -(-num_rows // ROWS_PER_TILE)),)
    _kernels()[name][grid](rows, *rest, num_rows, LEAST_LENGTH, **constants)


@functools.cache
def _kernels() -> dict[str, Any]:
    # imported on first use, because torch does not always come with Triton
    from emea.encoders.kernels import triton_unit_rows

    return {
        "unit_rows": triton_unit_rows.unit_rows_kernel,
        "unit_rows_backward": triton_unit_rows.unit_rows_backward_kernel,
    }
