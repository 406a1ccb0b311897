"""The layers on a GPU against double precision on a CPU, and their dropout."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from emea.data.sources.synthetic import synthetic_pair
from emea.encoders.joint_graph import JointGraph, join_graphs
from emea.encoders.reflection_layers import NeighbourhoodMeans, ReflectionLayers
from emea.kernels import choice, edge_orders
from emea.kernels.numba_layers import ACTIVATION_GRADIENTS
from emea.kernels.pair_distance import pair_distances


def inputs(graph: JointGraph, num_channels: int, dim: int, depth: int) -> list[Tensor]:
    """Starts, relations and attention kernels, in double precision."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(graph.num_entities, dim)] * num_channels
    shapes += [(2 * graph.num_relations, dim)]
    shapes += [(num_channels, depth, dim)] * 2
    return [0.5 * torch.randn(*shape, generator=generator).double() for shape in shapes]


def with_gradients(
    layers: ReflectionLayers, given: list[Tensor], weights: Tensor
) -> tuple[Tensor, list[Tensor]]:
    tensors = [tensor.clone().requires_grad_() for tensor in given]
    rows = layers(tensors[:-3], *tensors[-3:])
    gradients = torch.autograd.grad((rows * weights).sum(), tensors)
    return rows.detach().double().cpu(), [
        gradient.double().cpu() for gradient in gradients
    ]


def test_wide_rows_and_other_activations_use_the_operations_of_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "uses_triton", lambda values: True)
    graph = join_graphs(synthetic_pair(num_entities=10))
    layers = ReflectionLayers(graph, torch.tanh, 0.0)
    cases = [(100, 2), (512, 1), (513, 1), (100, 3)]
    found = [
        layers.attention.uses_triton(torch.zeros(2, dim), channels)
        for dim, channels in cases
    ]
    assert found == [True, True, False, False]
    layers = ReflectionLayers(graph, torch.sigmoid, 0.0)
    assert not layers.attention.uses_triton(torch.zeros(2, 3), 1)


def test_random_numbers_are_drawn_for_dropout_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("triton")
    from emea.kernels import triton_layers

    monkeypatch.setattr(triton_layers._TritonLayers, "apply", lambda *_: None)
    states = [torch.get_rng_state()]
    for dropout in (0.0, 0.3):
        orders: Any = None
        settings = triton_layers.LayerSettings(orders, True, dropout)
        triton_layers.triton_layers(settings, [torch.zeros(2, 3)])
        states.append(torch.get_rng_state())
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[1], states[2])


INTERPRETED = """
import numpy as np, torch
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.encoders.joint_graph import join_graphs
from emea.kernels import constant_product, edge_orders, triton_activation
from emea.kernels import triton_attention_gradient, triton_losses
from emea.kernels.pair_distance import pair_distances
from emea.encoders.reflection_layers import NeighbourhoodMeans, ReflectionLayers
from emea.kernels import choice
torch.use_deterministic_algorithms(True)  # fills new memory with NaN, which shows if it is read
edge_orders.EDGES_PER_CHUNK = 3
rng = np.random.default_rng(0)
graphs = [
    KnowledgeGraph(np.stack([rng.integers(0, high, 20) for high in (6, 1, 6)], axis=1), 6, 1)
    for _ in range(2)
]
graph = join_graphs(GraphPair("random", *graphs, np.zeros((0, 2))))
assert np.bincount(graph.edge_sets).max() > 6  # a set of several chunks


def compare(graph, activation, num_channels, depth, is_weighted):
    # rows and gradients against double precision; only some rows of some channels have a gradient
    layers = ReflectionLayers(graph, activation, 0.0)
    size, dim = graph.num_entities, 5
    shapes = [(size, dim)] * num_channels + [(2 * graph.num_relations, dim)]
    shapes += [(num_channels, depth, dim)] * 2
    values = [0.5 * torch.randn(*shape).double() for shape in shapes]
    weights = torch.randn(size, num_channels, depth + 1, dim).double()
    weights[~is_weighted.expand(weights.shape[:2])] = 0
    results = []
    for dtype in (torch.float64, torch.float32):
        choice.uses_triton = lambda *_: dtype == torch.float32
        given = [value.to(dtype).requires_grad_() for value in values]
        rows = layers(given[:-3], *given[-3:])
        loss = (rows * weights.view(size, -1).to(dtype)).sum()
        results.append([rows.double(), *torch.autograd.grad(loss, given)])
    for expected, found in zip(*results):
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


alignments = set()
edge_gradients = triton_attention_gradient.edge_gradients


def with_alignment(*arguments, reached, **named):
    alignments.add(reached.data_ptr() % 16)
    return edge_gradients(*arguments, reached=reached, **named)


triton_attention_gradient.edge_gradients = with_alignment

marked = []
activate_backward = triton_activation.activate_backward


def with_marks(columns, *rest):
    marked.append(columns.marks)
    return activate_backward(columns, *rest)


triton_activation.activate_backward = with_marks
means_marks = []
product = constant_product.product_of_transposed


def of_means(pattern, values, dense, marks):
    if len(dense) == 12:  # entities
        means_marks.append(marks)
    return product(pattern, values, dense, marks)


constant_product.product_of_transposed = of_means
for activation in (torch.relu, torch.tanh):
    for num_channels, share in ((1, 1.0), (2, 1.0), (1, 0.3), (2, 0.3), (2, 0.0)):
        compare(graph, activation, num_channels, 2, torch.rand(12, 1) < share)
compare(graph, torch.tanh, 2, 2, torch.rand(12, 2) < 0.2)  # rows active in one channel
assert alignments == {0}  # otherwise Triton compiles the kernels again

# chunks of 64 edges, which use all bits
star = np.stack([np.zeros(66), np.arange(66) > 64, np.arange(1, 67)], axis=1).astype(np.int64)
star = KnowledgeGraph(star, 67, 2)
edge_orders.EDGES_PER_CHUNK = edge_orders.MAX_CHUNK
star = join_graphs(GraphPair("star", star, graphs[0], np.zeros((0, 2))))
compare(star, torch.relu, 1, 1, torch.ones(star.num_entities, 1) > 0)

pairs, grad = torch.randint(12, (2, 70)), torch.randn(70)
grad[torch.rand(70) < 0.5] = 0
rows = torch.randn(12, 150, requires_grad=True)
loss = grad @ (rows[pairs[0]] - rows[pairs[1]]).abs().sum(1)
(expected,) = torch.autograd.grad(loss, rows)
found = triton_losses.pair_distances_backward(rows.detach(), *pairs, grad)
torch.testing.assert_close(found, expected)

# the loss marks the rows of its pairs, and the gradients of all other rows are not read
torch.are_deterministic_algorithms_enabled = lambda: False
first, second = torch.tensor([[0, 0, 3, 7, 5], [1, 2, 3, 8, 6]])
for activation in (torch.relu, torch.tanh):
    means, layers = NeighbourhoodMeans(graph), ReflectionLayers(graph, activation, 0.0)
    values = [0.5 * torch.randn(*shape).double() for shape in ((12, 5), (4, 5))]
    values += 0.5 * torch.randn(2, 2, 2, 5).double()
    grad, results = torch.tensor([1.0, -2.0, 1.0, 0.5, 0.0]).double(), []
    for dtype in (torch.float64, torch.float32):
        choice.uses_triton = lambda *_: dtype == torch.float32
        given = [value.to(dtype).requires_grad_() for value in values]
        rows = layers(means(*given[:2]), *given[1:])
        distances = pair_distances(rows, first, second)
        results.append(torch.autograd.grad(distances @ grad.to(dtype), given))
    for expected, found in zip(*results):
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    for columns in marked[-3:]:
        assert columns.nonzero().squeeze(1).tolist() == [0, 1, 2, 3, 7, 8]
    assert [marks is None for marks in means_marks] == [True, True, False, False]
    means_marks.clear()
choice.uses_triton = lambda *_: True

layers = ReflectionLayers(graph, torch.relu, 0.3)
starts = [torch.rand(12, 5).add(1).requires_grad_() for _ in range(2)]
rows = layers(starts, torch.randn(4, 5), *torch.zeros(2, 2, 0, 5))
kept = rows.detach() != 0
assert 0.5 < float(kept.float().mean()) < 0.9
torch.testing.assert_close(rows, torch.cat(starts, dim=1) * kept / 0.7)
torch.autograd.backward(rows.sum())
for start, mask in zip(starts, kept.chunk(2, dim=1)):
    torch.testing.assert_close(start.grad, mask / 0.7)
"""


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) >= "2.5.0",
    reason="Triton's interpreter turns an array of one element into a number of loops, which "
    "NumPy 2.5 refuses",
)
def test_the_kernels_in_an_interpreter(interpreted: Callable[..., None]) -> None:
    interpreted(INTERPRETED)


@pytest.mark.gpu
@pytest.mark.parametrize("activation", ACTIVATION_GRADIENTS)
@pytest.mark.parametrize("num_channels", [1, 2])
@pytest.mark.parametrize("dim", [3, 100, 128, 200])
@pytest.mark.parametrize("chunk", [2, 32])
@pytest.mark.parametrize("share", [1.0, 0.03])
def test_kernels_against_double_precision(
    activation: Any,
    num_channels: int,
    dim: int,
    chunk: int,
    share: float,
    cuda: torch.device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(edge_orders, "EDGES_PER_CHUNK", chunk)
    graph = join_graphs(synthetic_pair(num_entities=300))
    layers = ReflectionLayers(graph, activation, 0.0)
    given = inputs(graph, num_channels, dim, 2)
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(
        graph.num_entities, num_channels * 3 * dim, generator=generator
    ).double()
    without_gradient = torch.rand(graph.num_entities, generator=generator) >= share
    weights[without_gradient] = 0
    rows, gradients = with_gradients(layers, given, weights)
    layers.to(cuda)
    single = [tensor.float().to(cuda) for tensor in given]
    found, of_inputs = with_gradients(layers, single, weights.float().to(cuda))
    for left, right in zip([found, *of_inputs], [rows, *gradients], strict=True):
        torch.testing.assert_close(
            left, right, rtol=0, atol=1e-5 * float(right.abs().max())
        )


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [3, 100, 128])
def test_the_same_elements_are_dropped_in_both_directions(
    dim: int, cuda: torch.device
) -> None:
    graph = join_graphs(synthetic_pair(num_entities=300))
    layers = ReflectionLayers(graph, torch.relu, 0.3).to(cuda)
    *starts, relations, w, v = (
        part.float().to(cuda) for part in inputs(graph, 2, dim, 0)
    )
    starts = [start.abs().add(1).requires_grad_() for start in starts]
    rows = layers(starts, relations, w, v)
    kept = rows.detach() != 0
    torch.testing.assert_close(rows, torch.cat(starts, dim=1) * kept / 0.7)
    torch.autograd.backward(rows.sum())
    for start, mask in zip(starts, kept.chunk(2, dim=1), strict=True):
        assert start.grad is not None
        torch.testing.assert_close(start.grad, mask / 0.7)


@pytest.mark.gpu
def test_the_mask_is_even_and_new_each_time(cuda: torch.device) -> None:
    torch.manual_seed(0)
    graph = join_graphs(synthetic_pair(num_entities=2000))
    size = graph.num_entities
    layers = ReflectionLayers(graph, torch.relu, 0.3).to(cuda)
    *_, relations, w, v = (part.float().to(cuda) for part in inputs(graph, 2, 300, 0))
    ones = [torch.ones(size, 300, device=cuda)] * 2
    first, second = (layers(ones, relations, w, v) != 0 for _ in range(2))
    for kept in (first, second):
        slack = 5 * (0.21 / size) ** 0.5  # five standard deviations of a column's share
        assert float((kept.float().mean(0) - 0.7).abs().max()) < slack
        assert float((kept.float().mean(1) - 0.7).abs().max()) < 5 * (0.21 / 600) ** 0.5
    assert float((first == second).float().mean()) == pytest.approx(0.58, abs=0.005)
    neighbours = (first[:, 1:] == first[:, :-1]).float().mean()
    assert float(neighbours) == pytest.approx(0.58, abs=0.005)


@pytest.mark.gpu
@pytest.mark.parametrize("activation", ACTIVATION_GRADIENTS)
@pytest.mark.parametrize("num_pairs", [0, 3, 2000])
def test_distances_of_some_rows(
    activation: Any, num_pairs: int, cuda: torch.device
) -> None:
    torch.manual_seed(num_pairs)
    graph = join_graphs(synthetic_pair(num_entities=300))
    layers = ReflectionLayers(graph, activation, 0.0)
    means = NeighbourhoodMeans(graph)
    entities, *given = inputs(graph, 1, 100, 2)
    given = [entities, given[0], *(kernel.expand(2, -1, -1) for kernel in given[1:])]
    first, second = torch.randint(graph.num_entities, (2, num_pairs))
    results = []
    for device, dtype in (("cpu", torch.float64), (cuda, torch.float32)):
        tensors = [tensor.to(device, dtype).requires_grad_() for tensor in given]
        means.to(device)
        layers.to(device)
        rows = layers(means(*tensors[:2]), *tensors[1:])
        distances = pair_distances(rows, first.to(device), second.to(device))
        gradients = torch.autograd.grad(distances.sum(), tensors)
        results.append([gradient.double().cpu() for gradient in gradients])
    for expected, found in zip(*results, strict=True):
        # where two rows are nearly equal, rounding may change the sign of a difference
        assert float((found - expected).norm()) <= 2e-3 * float(expected.norm())
