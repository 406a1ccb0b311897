"""Sparse matrices with a fixed pattern."""

import warnings
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from emea.data.arrays import IntArray
from emea.data.sorting import stable_order
from emea.kernels import choice
from emea.kernels.edge_orders import RowChunks, row_chunks, whole_rows

# torch warns that the format is in beta; tests compare the used functions with loops
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")


class SparsePattern(nn.Module):
    """Holds the nonzero positions of a matrix, sorted by row, and their transpose.

    Args:
        rows: Row of each nonzero, ascending.
        cols: Column of each nonzero.
        shape: Numbers of rows and columns of the matrix.

    The nonzeros keep their given order, and values have the same order.
    """

    rows: Tensor
    cols: Tensor
    row_starts: Tensor
    transposed_rows: Tensor
    transposed_starts: Tensor
    to_transposed: Tensor

    def __init__(self, rows: IntArray, cols: IntArray, shape: tuple[int, int]) -> None:
        super().__init__()
        if np.any(np.diff(rows) < 0):
            raise ValueError("rows must be ascending")
        self.shape = shape
        order = stable_order(cols, shape[1])
        buffers = {
            "rows": rows,
            "cols": cols,
            "row_starts": segment_starts(rows, shape[0]),
            "transposed_rows": rows[order],
            "transposed_starts": segment_starts(cols, shape[1]),
            "to_transposed": order,
        }
        for side in ("row", "transposed"):
            chunks = row_chunks(buffers[f"{side}_starts"])
            names = (f"{side}_chunk_{part}" for part in RowChunks._fields)
            buffers |= dict(zip(names, chunks, strict=True))
        for name, values in buffers.items():
            # 32-bit indices halve the memory traffic; graphs have far fewer than 2^31 edges.
            # torch itself fills the rows of hubs, for which it needs 64 bits
            kind = np.int64 if name.endswith("_hubs") else np.int32
            tensor = torch.from_numpy(np.ascontiguousarray(values, dtype=kind))
            self.register_buffer(name, tensor, persistent=False)

    @property
    def num_nonzeros(self) -> int:
        """Number of positions in the pattern."""
        return len(self.rows)

    def weighted_sum(self, values: Tensor, dense: Tensor) -> Tensor:
        """Return ``Y[row] = sum_e values[e] * dense[col_e]``, differentiable in both arguments."""
        sums = _WeightedSum.apply(values, dense, self)  # type: ignore[no-untyped-call]
        return cast(Tensor, sums)

    def pair_dots(self, left: Tensor, right: Tensor) -> Tensor:
        """Return ``left[row_e] . right[col_e]`` per nonzero, differentiable in both arguments."""
        dots = _PairDots.apply(left, right, self)  # type: ignore[no-untyped-call]
        return cast(Tensor, dots)

    def row_softmax(self, logits: Tensor) -> Tensor:
        """Return the softmax of the nonzeros' logits along each row."""
        weights = _RowSoftmax.apply(logits, self)  # type: ignore[no-untyped-call]
        return cast(Tensor, weights)

    def chunks(self, side: str) -> RowChunks:
        """Return the rows of the pattern (``row``) or its transpose (``transposed``) in chunks."""
        if torch.are_deterministic_algorithms_enabled():
            return whole_rows(
                getattr(self, f"{side}_starts"), getattr(self, f"{side}_chunk_hubs")
            )
        values = {
            name: getattr(self, f"{side}_chunk_{name}") for name in RowChunks._fields
        }
        return RowChunks(**values)

    def mean_values(self) -> Tensor:
        """Return double values with which ``weighted_sum`` is the mean over a row's nonzeros."""
        return (1 / torch.diff(self.row_starts).double()).index_select(0, self.rows)


def segment_starts(ids: IntArray, num_segments: int) -> IntArray:
    """Return the start of each id's run in the sorted ids, and the total length at the end."""
    starts = np.zeros(num_segments + 1, dtype=np.int64)
    np.cumsum(np.bincount(ids, minlength=num_segments), out=starts[1:])
    return starts


def matmul(pattern: SparsePattern, values: Tensor, dense: Tensor) -> Tensor:
    """Multiply the sparse matrix by a dense one, without gradient."""
    return _product(pattern, "row", values, dense)


def transposed_matmul(pattern: SparsePattern, values: Tensor, dense: Tensor) -> Tensor:
    """Multiply the transposed sparse matrix by a dense one, without gradient."""
    sorted_values = values.index_select(0, pattern.to_transposed)
    return product_of_transposed(pattern, sorted_values, dense)


def product_of_transposed(
    pattern: SparsePattern, values: Tensor, dense: Tensor, marks: Tensor | None = None
) -> Tensor:
    """Multiply the transposed sparse matrix, whose values have its own order, by a dense one.

    Args:
        pattern: Positions of the nonzeros.
        values: Values in the order of the transposed matrix.
        dense: The dense matrix.
        marks: Bytes: whether a row of the dense matrix can differ from zero; ``None`` if all can.
    """
    return _product(pattern, "transposed", values, dense, marks)


def sampled_dots(pattern: SparsePattern, left: Tensor, right: Tensor) -> Tensor:
    """Return the dot products at the nonzeros, without gradient."""
    if choice.uses_triton(left):
        from emea.kernels import triton_sparse

        return triton_sparse.sampled_dots(pattern.rows, pattern.cols, left, right)
    if pattern.num_nonzeros > pattern.shape[0] * pattern.shape[1]:
        # positions repeat, but torch cannot sample more positions than the matrix has elements
        return (left @ right.t())[pattern.rows, pattern.cols]
    zeros = left.new_zeros(pattern.num_nonzeros)
    sample = _csr(pattern.row_starts, pattern.cols, zeros, pattern.shape)
    dots: Tensor = torch.sparse.sampled_addmm(
        sample, left, right.t(), beta=0.0
    ).values()
    return dots


def _product(
    pattern: SparsePattern,
    side: str,
    values: Tensor,
    dense: Tensor,
    marks: Tensor | None = None,
) -> Tensor:
    """Multiply the matrix (``row``) or its transpose (``transposed``) with a dense matrix.

    In single precision on a CPU, ``embedding_bag`` computes the rows. It adds in the same order as
    torch's sparse product and takes about half its time with MKL, and even less without MKL.
    """
    shape = pattern.shape
    starts = pattern.row_starts
    cols = pattern.cols
    if side == "transposed":
        shape = (pattern.shape[1], pattern.shape[0])
        starts = pattern.transposed_starts
        cols = pattern.transposed_rows
    if choice.uses_triton(dense):
        from emea.kernels import triton_sparse  # torch may come without Triton

        return triton_sparse.matmul(
            pattern.chunks(side), shape[0], cols, values, dense, marks=marks
        )
    if len(cols) > shape[0] * shape[1] and dense.is_cuda:
        # positions repeat, but cuSPARSE refuses more positions than the matrix has elements
        rows = torch.arange(shape[0], device=cols.device).repeat_interleave(
            starts.diff()
        )
        matrix = values.new_zeros(shape).index_put_(
            (rows, cols.long()), values, accumulate=True
        )
        return matrix @ dense
    if not uses_bags(dense) or not len(cols):
        return _csr(starts, cols, values, shape) @ dense
    # detached, because torch otherwise also prepares a gradient that is not used
    sums: Tensor = torch.embedding_bag(
        dense.detach(),
        cols,
        starts,
        mode=0,
        per_sample_weights=values.detach(),
        include_last_offset=True,
    )[0]
    return sums


def uses_bags(dense: Tensor) -> bool:
    """Return whether ``embedding_bag`` is the fastest way to add up rows of a matrix."""
    return dense.device.type == "cpu" and dense.dtype == torch.float32


def _csr(
    starts: Tensor, cols: Tensor, values: Tensor, shape: tuple[int, int]
) -> Tensor:
    return torch.sparse_csr_tensor(starts, cols, values, shape, check_invariants=False)


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, values: Tensor, dense: Tensor, pattern: SparsePattern
    ) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(values, dense)
        return matmul(pattern, values, dense)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        values, dense = ctx.saved_tensors
        grad = grads[0].contiguous()
        needs_values, needs_dense, _ = ctx.needs_input_grad
        grad_values = sampled_dots(ctx.pattern, grad, dense) if needs_values else None
        grad_dense = (
            transposed_matmul(ctx.pattern, values, grad) if needs_dense else None
        )
        return grad_values, grad_dense, None


class _PairDots(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, left: Tensor, right: Tensor, pattern: SparsePattern
    ) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(left, right)
        return sampled_dots(pattern, left, right)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        left, right = ctx.saved_tensors
        grad = grads[0].contiguous()
        needs_left, needs_right, _ = ctx.needs_input_grad
        grad_left = matmul(ctx.pattern, grad, right) if needs_left else None
        grad_right = transposed_matmul(ctx.pattern, grad, left) if needs_right else None
        return grad_left, grad_right, None


class _RowSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, pattern: SparsePattern) -> Tensor:
        ctx.pattern = pattern
        peak = logits.new_full((pattern.shape[0],), -torch.inf)
        peak.scatter_reduce_(0, pattern.rows.long(), logits, "amax")
        weights = torch.exp(logits - peak.index_select(0, pattern.rows))
        weights /= _row_sums(pattern, weights).index_select(0, pattern.rows)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        weighted = weights * grads[0]
        total = _row_sums(ctx.pattern, weighted).index_select(0, ctx.pattern.rows)
        return weighted - weights * total, None


def _row_sums(pattern: SparsePattern, values: Tensor) -> Tensor:
    return values.new_zeros(pattern.shape[0]).index_add_(0, pattern.rows, values)


class NormalisedAdjacency(SparsePattern):
    """Holds positions and values of ``D^-1/2 (A + I) D^-1/2``.

    Args:
        pairs: ``[num_pairs, 2]`` neighbours in any order; duplicates are allowed.
        size: Number of entities.
    """

    weights: Tensor

    def __init__(self, pairs: IntArray, size: int) -> None:
        loops = np.repeat(np.arange(size)[:, None], 2, axis=1)
        both = np.concatenate([pairs, pairs[:, ::-1], loops])
        keys = np.unique(both[:, 0] * size + both[:, 1])
        rows = keys // size
        cols = keys % size
        super().__init__(rows, cols, (size, size))
        scale = np.bincount(rows, minlength=size) ** -0.5
        weights = torch.from_numpy(scale[rows] * scale[cols])
        self.register_buffer("weights", weights, persistent=False)
