"""The layers against single messages, and the order of channels and depths."""

from typing import Any

import pytest
import torch
from torch import Tensor

from emea.encoders.joint_graph import JointGraph, join_graphs
from emea.encoders.reflection_layers import ReflectionLayers

DIM = 12


def inputs(graph: JointGraph, num_channels: int, dim: int, seed: int = 0) -> list[Tensor]:
    """Features, unit reflectors and attention kernels, in double precision."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (num_channels, graph.num_entities, dim), (graph.num_sets, dim)
    shapes += ((num_channels, dim),) * 2
    tensors = [torch.randn(*shape, generator=generator).double() for shape in shapes]
    tensors[1] = torch.nn.functional.normalize(tensors[1])
    return [tensor.requires_grad_() for tensor in tensors]


def loop(graph: JointGraph, features: Tensor, reflectors: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """Each entity's messages one by one."""
    out = torch.zeros_like(features)
    for channel in range(len(features)):
        for entity in range(graph.num_entities):
            messages, logits = [], []
            for edge in (graph.edge_rows == entity).nonzero()[0]:
                r = reflectors[graph.edge_sets[edge]]
                n = features[channel, graph.edge_cols[edge]]
                messages.append(n - 2 * (n @ r) * r)
                logits.append(messages[-1] @ w[channel] + r @ v[channel])
            if messages:
                weights = torch.softmax(torch.stack(logits), 0)
                out[channel, entity] = weights @ torch.stack(messages)
    return out


@pytest.mark.parametrize("num_channels", [1, 2, 3])
def test_a_layer_is_its_messages_by_attention(make_pair: Any, num_channels: int) -> None:
    graph = join_graphs(make_pair(num_channels))
    layers = ReflectionLayers(graph, torch.relu, 0.0)
    given = inputs(graph, num_channels, 4)
    with torch.no_grad():
        torch.testing.assert_close(layers.attend(*given), loop(graph, *given))


def test_channels_and_depths_lie_side_by_side(make_pair: Any) -> None:
    graph = join_graphs(make_pair(0))
    layers = ReflectionLayers(graph, torch.tanh, 0.0).eval()
    generator = torch.Generator().manual_seed(0)
    starts = [torch.randn(graph.num_entities, 3, generator=generator).double() for _ in range(2)]
    relations = torch.randn(2 * graph.num_relations, 3, generator=generator).double()
    w, v = torch.randn(2, 2, 2, 3, generator=generator).double()
    rows = layers(starts, relations, w, v)
    assert rows.shape == (graph.num_entities, 2 * 3 * 3)
    for channel in range(2):
        alone = layers(starts[channel : channel + 1], relations, w[[channel]], v[[channel]])
        torch.testing.assert_close(rows[:, channel * 9 : (channel + 1) * 9], alone)
    torch.testing.assert_close(rows[:, 9:12], torch.tanh(starts[1]))
