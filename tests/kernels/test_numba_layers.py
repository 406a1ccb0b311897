"""The compiled layers against the layers that are built from torch's operations."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from emea.data.sources.synthetic import synthetic_pair
from emea.encoders.joint_graph import JointGraph, join_graphs
from emea.encoders.reflection_layers import ReflectionLayers
from emea.kernels import numba_attention

pytest.importorskip("numba")

DEPTH = 2


def inputs(
    graph: JointGraph, num_channels: int, dim: int, dtype: torch.dtype
) -> list[Tensor]:
    """Starts of the channels, relations and attention kernels."""
    generator = torch.Generator().manual_seed(0)
    shapes: list[tuple[int, ...]] = [(graph.num_entities, dim)] * num_channels
    shapes += [(2 * graph.num_relations, dim), *[(num_channels, DEPTH, dim)] * 2]
    tensors = [torch.randn(*shape, generator=generator) for shape in shapes]
    return [tensor.to(dtype).requires_grad_() for tensor in tensors]


def rows_and_gradients(
    layers: ReflectionLayers, given: list[Tensor], share: float = 1.0
) -> list[Tensor]:
    """The output and the gradients of all inputs, for random weights of a share of the rows."""
    torch.manual_seed(1)  # of the dropout
    rows = layers(given[:-3], *given[-3:])
    weights = torch.randn(rows.shape, generator=torch.Generator().manual_seed(2))
    weights[int(share * len(rows)) :] = 0
    weights[::2, :-1] = 0  # rows with a gradient of one element
    rows.backward(weights.to(rows.dtype))
    return [
        rows.detach(),
        *(tensor.grad for tensor in given if tensor.grad is not None),
    ]


@pytest.mark.usefixtures("each_kernels")
@pytest.mark.parametrize("activation", [torch.relu, torch.tanh])
@pytest.mark.parametrize(
    ("num_channels", "dim", "dropout"), [(1, 3, 0.0), (2, 37, 0.3)]
)
@pytest.mark.parametrize("edges_per_part", [100, 100_000])
@pytest.mark.parametrize("share", [1.0, 0.02, 0.0])
def test_against_double_precision(
    activation: Callable[[Tensor], Tensor],
    num_channels: int,
    dim: int,
    dropout: float,
    edges_per_part: int,
    share: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numba_attention, "EDGES_PER_PART", edges_per_part)
    graph = join_graphs(synthetic_pair(num_entities=100))
    layers = ReflectionLayers(graph, activation, dropout)
    found, expected = (
        rows_and_gradients(layers, inputs(graph, num_channels, dim, dtype), share)
        for dtype in (torch.float32, torch.float64)
    )
    assert len(found) == len(expected) == num_channels + 4
    for single, double in zip(found, expected, strict=True):
        tolerance = 500 * torch.finfo(torch.float32).eps * float(double.abs().max())
        torch.testing.assert_close(single.double(), double, rtol=0, atol=tolerance)


@pytest.mark.parametrize("edges_per_part", [100, 100_000])
def test_the_number_of_threads_does_not_change_a_bit(
    edges_per_part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba_attention, "EDGES_PER_PART", edges_per_part)
    monkeypatch.setattr(numba_attention, "VALUES_PER_THREAD", 1)
    graph = join_graphs(synthetic_pair(num_entities=100))
    edges, sets = (
        ReflectionLayers(graph, torch.relu, 0.0).attention.edges,
        torch.from_numpy(graph.edge_sets),
    )
    arrays = numba_attention.edge_arrays(edges, sets.int())
    generator = torch.Generator().manual_seed(0)
    starts, grads = torch.randn(
        2, 2, DEPTH + 1, graph.num_entities, 9, generator=generator
    )
    reflectors = torch.randn(graph.num_sets, 9, generator=generator)
    w, v = torch.randn(2, 2, DEPTH, 9, generator=generator)
    active = torch.arange(graph.num_entities) % 3 > 0
    results: list[list[Tensor]] = []
    for num_threads in (1, 3):
        monkeypatch.setattr(
            numba_attention, "available_threads", lambda number=num_threads: number
        )
        outputs, of_outputs = starts.clone(), grads.clone()
        attended = numba_attention.attend(arrays, True, outputs, reflectors, w, v)
        saved = outputs, reflectors, w, *attended
        gradients = numba_attention.attend_backward(
            arrays, True, saved, active, of_outputs
        )
        results.append([outputs, *attended, *gradients, of_outputs])
    for one, three in zip(*results, strict=True):
        assert torch.equal(one, three)


def test_a_nan_propagates(make_pair: Any) -> None:
    graph = join_graphs(make_pair(0))
    given = [tensor.detach() for tensor in inputs(graph, 1, 4, torch.float32)]
    given[0][graph.edge_cols[0]] = torch.nan
    rows = ReflectionLayers(graph, torch.tanh, 0.0)(given[:1], *given[1:])
    assert rows[graph.edge_rows[0]].isnan().any()


def test_another_activation_uses_the_operations_of_torch(make_pair: Any) -> None:
    graph = join_graphs(make_pair(0))
    rows = torch.zeros(2, 3)
    assert ReflectionLayers(graph, torch.relu, 0.0).attention.uses_numba(rows)
    assert not ReflectionLayers(graph, torch.sigmoid, 0.0).attention.uses_numba(rows)
    assert not ReflectionLayers(graph, torch.relu, 0.0).attention.uses_numba(
        rows.double()
    )
