"""Sparse products against dense float64 matrices, values and gradients."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from emea.encoders.joint_graph import join_graphs
from emea.kernels.sparse_pattern import (
    NormalisedAdjacency,
    SparsePattern,
    matmul,
    sampled_dots,
    transposed_matmul,
)


@dataclass(frozen=True)
class Drawn:
    """Positions of a pattern, the width of what it is multiplied with, and a seed."""

    positions: tuple[tuple[int, int], ...]
    shape: tuple[int, int]
    dim: int
    seed: int

    def pattern(self) -> SparsePattern:
        rows, cols = np.array(self.positions, dtype=np.int64).reshape(-1, 2).T
        return SparsePattern(rows, cols, self.shape)

    def random(self, *shape: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed + len(shape))
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    def dense(self, values: Tensor) -> Tensor:
        matrix = torch.zeros(self.shape, dtype=torch.float64)
        for (row, col), value in zip(self.positions, values, strict=True):
            matrix[row, col] += value
        return matrix


@st.composite
def drawn_patterns(draw: st.DrawFn) -> Drawn:
    """Rows ascend, columns come in any order and may repeat within a row."""
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    position = st.tuples(st.integers(0, shape[0] - 1), st.integers(0, shape[1] - 1))
    positions = sorted(draw(st.lists(position, max_size=12)), key=lambda pair: pair[0])
    return Drawn(
        tuple(positions), shape, draw(st.integers(1, 4)), draw(st.integers(0, 99))
    )


EMPTY = Drawn((), (3, 2), dim=2, seed=0)
GAPS = Drawn(((1, 4), (1, 1), (3, 1), (3, 1)), (5, 6), dim=3, seed=1)
"""Empty rows and columns at both ends and between, unsorted columns, a repeated position."""

REPEATED = Drawn(((0, 0), (0, 0), (1, 0), (1, 0)), (3, 1), dim=2, seed=2)
"""More nonzeros than the matrix has elements."""


def on_any_pattern(test: Callable[[Drawn], None]) -> Callable[[], None]:
    for pattern in (EMPTY, GAPS, REPEATED):
        test = example(pattern)(test)
    return given(drawn_patterns())(test)


@on_any_pattern
def test_weighted_sum_is_sparse_times_dense(drawn: Drawn) -> None:
    values = drawn.random(len(drawn.positions))
    dense = drawn.random(drawn.shape[1], drawn.dim)
    result = drawn.pattern().weighted_sum(values, dense)
    torch.testing.assert_close(result, drawn.dense(values) @ dense, rtol=0, atol=1e-12)


@on_any_pattern
def test_transposed_product(drawn: Drawn) -> None:
    values = drawn.random(len(drawn.positions))
    dense = drawn.random(drawn.shape[0], drawn.dim)
    result = transposed_matmul(drawn.pattern(), values, dense)
    torch.testing.assert_close(
        result, drawn.dense(values).T @ dense, rtol=0, atol=1e-12
    )


@on_any_pattern
def test_pair_dots_sample_the_dense_product(drawn: Drawn) -> None:
    left = drawn.random(drawn.shape[0], drawn.dim)
    right = drawn.random(drawn.shape[1], drawn.dim).flip(0)
    result = drawn.pattern().pair_dots(left, right)
    product = left @ right.T
    expected = [product[row, col] for row, col in drawn.positions]
    assert result.tolist() == pytest.approx(
        [float(value) for value in expected], abs=1e-12
    )


@on_any_pattern
def test_row_softmax(drawn: Drawn) -> None:
    logits = 3 * drawn.random(len(drawn.positions))
    rows = [row for row, _ in drawn.positions]
    result = drawn.pattern().row_softmax(logits)
    for row in set(rows):
        inside = [edge for edge, other in enumerate(rows) if other == row]
        expected = torch.softmax(logits[inside], dim=0)
        torch.testing.assert_close(result[inside], expected, rtol=0, atol=1e-12)
    assert len(result) == len(rows)


def test_row_softmax_of_large_logits_stays_finite() -> None:
    logits = torch.tensor([1e4, 1e4, -1e4, -1e4], dtype=torch.float32)
    assert GAPS.pattern().row_softmax(logits).tolist() == [0.5] * 4


@on_any_pattern
def test_mean_values_make_a_mean(drawn: Drawn) -> None:
    pattern = drawn.pattern()
    dense = drawn.random(drawn.shape[1], drawn.dim)
    means = pattern.weighted_sum(pattern.mean_values(), dense)
    for row in range(drawn.shape[0]):
        cols = [col for other, col in drawn.positions if other == row]
        expected = dense[cols].mean(0) if cols else torch.zeros_like(dense[0])
        torch.testing.assert_close(means[row], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("drawn", [EMPTY, GAPS, REPEATED])
@pytest.mark.parametrize("function", ["weighted_sum", "pair_dots", "row_softmax"])
def test_gradients(function: str, drawn: Drawn) -> None:
    first = drawn.random(len(drawn.positions))
    if function == "pair_dots":
        first = drawn.random(drawn.shape[0], drawn.dim)
    inputs = [
        first,
        *(
            []
            if function == "row_softmax"
            else [drawn.random(drawn.shape[1], drawn.dim)]
        ),
    ]
    for value in inputs:
        value.requires_grad_()
    assert torch.autograd.gradcheck(getattr(drawn.pattern(), function), tuple(inputs))


@pytest.mark.parametrize("function", ["weighted_sum", "pair_dots"])
@pytest.mark.parametrize("wanted", [0, 1])
def test_gradient_of_one_argument_alone(function: str, wanted: int) -> None:
    pattern = GAPS.pattern()
    first = GAPS.random(4) if function == "weighted_sum" else GAPS.random(5, 3)
    arguments = [first, GAPS.random(6, 3)]
    arguments[wanted].requires_grad_()
    assert torch.autograd.gradcheck(getattr(pattern, function), tuple(arguments))
    getattr(pattern, function)(*arguments).sum().backward()
    assert arguments[1 - wanted].grad is None


def test_single_precision_and_strided_operands() -> None:
    pattern = GAPS.pattern()
    values = GAPS.random(4).float()
    dense = GAPS.random(3, 6).float().T
    left = GAPS.random(3, 5).float().T
    matrix = GAPS.dense(values.double()).float()
    torch.testing.assert_close(matmul(pattern, values, dense), matrix @ dense)
    rows, cols = zip(*GAPS.positions, strict=True)
    torch.testing.assert_close(
        sampled_dots(pattern, left, dense), (left @ dense.T)[list(rows), list(cols)]
    )


def test_gradient_that_comes_in_strided() -> None:
    pattern = GAPS.pattern()
    dense = GAPS.random(6, 3).requires_grad_()
    values = GAPS.random(4)
    weights = GAPS.random(3, 5)
    (pattern.weighted_sum(values, dense).T * weights).sum().backward()
    torch.testing.assert_close(dense.grad, GAPS.dense(values).T @ weights.T)


def test_rows_must_ascend() -> None:
    with pytest.raises(ValueError, match="ascending"):
        SparsePattern(np.array([1, 0]), np.array([0, 0]), (2, 1))


def test_pattern_is_no_part_of_a_checkpoint() -> None:
    assert not GAPS.pattern().state_dict()


def test_where_order_matters_rows_are_not_cut() -> None:
    rows = np.repeat([0, 1, 3], [100, 2, 40])
    pattern = SparsePattern(rows, np.arange(len(rows)) % 7, (5, 7))
    cut = pattern.chunks("row")
    torch.use_deterministic_algorithms(True)
    try:
        whole = pattern.chunks("row")
    finally:
        torch.use_deterministic_algorithms(False)
    assert cut.alone.tolist() == [0] * 4 + [1, 1, 0, 0, 1]
    assert whole.rows.tolist() == [0, 1, 2, 3, 4]
    assert whole.starts.tolist() == [0, 100, 102, 102, 142]
    assert whole.ends.tolist() == [100, 102, 102, 142, 142]
    assert whole.alone.tolist() == [1] * 5  # stored, not added to what others store
    assert whole.hubs.tolist() == cut.hubs.tolist() == [0, 3]


@on_any_pattern
def test_single_precision_agrees_with_double(drawn: Drawn) -> None:
    """Single precision on a CPU uses another product than double precision."""
    pattern = drawn.pattern()
    values, dense = (
        drawn.random(len(drawn.positions)),
        drawn.random(drawn.shape[1], drawn.dim),
    )
    longest = 1 + len(drawn.positions)
    bound = 4 * longest * torch.finfo().eps * (1 + float(values.abs().sum()))
    single = matmul(pattern, values.float(), dense.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(
        single.double(), matmul(pattern, values, dense), rtol=0, atol=bound
    )
    other = drawn.random(drawn.shape[0], drawn.dim)
    back = transposed_matmul(pattern, values.float(), other.float())
    expected = transposed_matmul(pattern, values, other)
    torch.testing.assert_close(back.double(), expected, rtol=0, atol=bound)


def test_against_a_dense_matrix(make_pair: Any) -> None:
    graph = join_graphs(make_pair(3))
    size = graph.num_entities
    pairs = graph.triples()[:, [0, 2]]
    dense = torch.eye(size, dtype=torch.float64)
    for left, right in pairs.tolist():
        dense[left, right] = dense[right, left] = 1
    degrees = dense.sum(1)
    expected = dense / (degrees[:, None] * degrees[None, :]).sqrt()
    adjacency = NormalisedAdjacency(pairs, size)
    found = adjacency.weighted_sum(
        adjacency.weights, torch.eye(size, dtype=torch.float64)
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert adjacency.num_nonzeros == int((dense > 0).sum())


def test_without_pairs_everyone_is_alone() -> None:
    adjacency = NormalisedAdjacency(np.zeros((0, 2), dtype=np.int64), 3)
    assert adjacency.rows.tolist() == adjacency.cols.tolist() == [0, 1, 2]
    assert adjacency.weights.tolist() == [1, 1, 1]


def test_more_values_than_the_matrix_has_elements() -> None:
    rows = np.repeat(np.arange(3), [0, 40, 7])
    cols = np.random.default_rng(0).integers(0, 2, len(rows))
    pattern, values = SparsePattern(rows, cols, (3, 2)), torch.randn(len(rows)).double()
    dense = torch.randn(2, 5).double()
    expected = torch.zeros(3, 5).double()
    for row, col, value in zip(rows, cols, values, strict=True):
        expected[row] += value * dense[col]
    torch.testing.assert_close(matmul(pattern, values, dense), expected)
