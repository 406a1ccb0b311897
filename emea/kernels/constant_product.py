"""Products with a constant sparse matrix, and marks of the rows that a gradient has."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from emea.kernels.sparse_pattern import (
    SparsePattern,
    matmul,
    product_of_transposed,
)

ALIGNED = 16
"""Divisor of the length of marks. Triton would compile a kernel again for unaligned tensors."""


def no_marks(num_rows: int, device: torch.device, number: int = 1) -> Tensor:
    """Return ``[number, num_rows]`` bytes that are zero; each row of them is aligned."""
    length = -(-num_rows // ALIGNED) * ALIGNED
    return torch.zeros(number, length, dtype=torch.int8, device=device)[:, :num_rows]


class RowMarks:
    """Passes the marks of a gradient from the function that computes it to the one that needs it.

    Autograd passes only the gradient. The function whose output has few rows with a gradient keeps
    an object of this class as ``ctx.marks``; its consumer finds it with ``marks_of``. If the output
    has several consumers, autograd adds up their gradients into another tensor without marks.
    """

    def __init__(self) -> None:
        self._noted: tuple[Tensor, Tensor] | None = None

    def note(self, gradient: Tensor, marks: Tensor) -> None:
        """Note the marks of a gradient. Autograd does not change a tensor that is kept here."""
        self._noted = gradient, marks

    def taken(self, gradient: Tensor) -> Tensor | None:
        """Return and forget the marks of this gradient; ``None`` if all rows may have values."""
        noted, self._noted = self._noted, None
        if noted is None or noted[0].data_ptr() != gradient.data_ptr():
            return None
        return noted[1]


def marks_of(output: Tensor) -> RowMarks | None:
    """Return where to note the marks of the gradient of a function's output, if it uses them."""
    return getattr(output.grad_fn, "marks", None)


class ConstantProduct(nn.Module):
    """Multiplies a matrix by a sparse matrix with constant values.

    The values are converted to the precision of the other matrix and sorted for the transpose once,
    instead of in every step. The converted values are kept, because a CUDA graph may read them.

    Args:
        pattern: Positions of the nonzeros.
        values: ``[num_nonzeros]`` double values.
    """

    values: Tensor

    def __init__(self, pattern: SparsePattern, values: Tensor) -> None:
        super().__init__()
        self.pattern = pattern
        self.register_buffer("values", values, persistent=False)
        self._converted: dict[
            tuple[torch.dtype, torch.device], tuple[Tensor, Tensor]
        ] = {}

    def forward(self, dense: Tensor) -> Tensor:
        """Return the product, differentiable in ``dense``."""
        values, transposed = self._values_like(dense)
        product = _Product.apply(dense, self.pattern, values, transposed)  # type: ignore[no-untyped-call]
        return cast(Tensor, product)

    def _values_like(self, dense: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values and those of the transpose, in the precision of ``dense``."""
        kind = dense.dtype, dense.device
        if kind not in self._converted:
            values = self.values.to(dense)
            self._converted[kind] = (
                values,
                values.index_select(0, self.pattern.to_transposed),
            )
        return self._converted[kind]


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        dense: Tensor,
        pattern: SparsePattern,
        values: Tensor,
        transposed: Tensor,
    ) -> Tensor:
        ctx.pattern, ctx.transposed, ctx.marks = pattern, transposed, RowMarks()
        return matmul(pattern, values, dense)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        grad = grads[0].contiguous()
        marks = ctx.marks.taken(grad)
        return (
            product_of_transposed(ctx.pattern, ctx.transposed, grad, marks),
            None,
            None,
            None,
        )
