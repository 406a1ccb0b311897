"""Products with a sparse matrix whose values never change."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from emea.encoders.kernels.row_marks import RowMarks
from emea.encoders.kernels.sparse_pattern import SparsePattern, matmul, product_of_transposed


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
        self._converted: dict[tuple[torch.dtype, torch.device], tuple[Tensor, Tensor]] = {}

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
            self._converted[kind] = values, values.index_select(0, self.pattern.to_transposed)
        return self._converted[kind]


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, dense: Tensor, pattern: SparsePattern, values: Tensor, transposed: Tensor
    ) -> Tensor:
        ctx.pattern, ctx.transposed, ctx.marks = pattern, transposed, RowMarks()
        return matmul(pattern, values, dense)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        grad = grads[0].contiguous()
        marks = ctx.marks.taken(grad)
        return product_of_transposed(ctx.pattern, ctx.transposed, grad, marks), None, None, None
