"""The layers against single messages, and the order of channels and depths."""

from typing import Any

import pytest
import torch
from torch import Tensor

from emea.encoders.joint_graph import JointGraph, join_graphs
from emea.encoders.reflection_layers import NeighbourhoodMeans, ReflectionLayers


def inputs(graph: JointGraph, dim: int) -> list[Tensor]:
    """Features, unit reflectors and attention kernels, in double precision."""
    generator = torch.Generator().manual_seed(0)
    shapes: list[tuple[int, ...]] = [
        (graph.num_entities, dim),
        (graph.num_sets, dim),
        (dim,),
        (dim,),
    ]
    tensors = [torch.randn(*shape, generator=generator).double() for shape in shapes]
    tensors[1] = torch.nn.functional.normalize(tensors[1])
    return [tensor.requires_grad_() for tensor in tensors]


def loop(
    graph: JointGraph, features: Tensor, reflectors: Tensor, w: Tensor, v: Tensor
) -> Tensor:
    """Each entity's messages one by one."""
    out = torch.zeros_like(features)
    for entity in range(graph.num_entities):
        messages, logits = [], []
        for edge in (graph.edge_rows == entity).nonzero()[0]:
            r = reflectors[graph.edge_sets[edge]]
            n = features[graph.edge_cols[edge]]
            messages.append(n - 2 * (n @ r) * r)
            logits.append(messages[-1] @ w + r @ v)
        if messages:
            out[entity] = torch.softmax(torch.stack(logits), 0) @ torch.stack(messages)
    return out


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_layer_is_its_messages_by_attention(make_pair: Any, seed: int) -> None:
    graph = join_graphs(make_pair(seed))
    layers = ReflectionLayers(graph, torch.relu, 0.0)
    given = inputs(graph, 4)
    with torch.no_grad():
        torch.testing.assert_close(layers.attention.attend(*given), loop(graph, *given))


def test_in_training_a_share_is_dropped(make_pair: Any) -> None:
    torch.manual_seed(0)
    graph = join_graphs(make_pair(0))
    layers = ReflectionLayers(graph, torch.relu, 0.25)
    starts = [torch.ones(graph.num_entities, 500).double()] * 2
    relations = torch.randn(2 * graph.num_relations, 500).double()
    rows = layers(starts, relations, *torch.zeros(2, 2, 0, 500).double())
    assert float((rows == 0).float().mean()) == pytest.approx(0.25, abs=0.01)
    assert float(rows.mean()) == pytest.approx(1, abs=0.02)


def test_channels_and_depths_lie_side_by_side(make_pair: Any) -> None:
    graph = join_graphs(make_pair(0))
    layers = ReflectionLayers(graph, torch.tanh, 0.0).eval()
    generator = torch.Generator().manual_seed(0)
    starts = [
        torch.randn(graph.num_entities, 3, generator=generator).double()
        for _ in range(2)
    ]
    relations = torch.randn(2 * graph.num_relations, 3, generator=generator).double()
    w, v = torch.randn(2, 2, 2, 3, generator=generator).double()
    rows = layers(starts, relations, w, v)
    assert rows.shape == (graph.num_entities, 2 * 3 * 3)
    for channel in range(2):
        alone = layers(
            starts[channel : channel + 1], relations, w[[channel]], v[[channel]]
        )
        torch.testing.assert_close(rows[:, channel * 9 : (channel + 1) * 9], alone)
    torch.testing.assert_close(rows[:, 9:12], torch.tanh(starts[1]))


def test_means_count_each_neighbour_and_relation_once(make_pair: Any) -> None:
    pair = make_pair(0)
    graph = join_graphs(pair)
    around: list[set[int]] = [{entity} for entity in range(graph.num_entities)]
    incident: list[set[int]] = [set() for _ in range(graph.num_entities)]
    shift, relation_shift = pair.source.num_entities, pair.source.num_relations
    for side, by, relation_by in (
        (pair.source, 0, 0),
        (pair.target, shift, relation_shift),
    ):
        for head, relation, tail in side.triples.tolist():
            around[head + by].add(tail + by)
            around[tail + by].add(head + by)
            incident[head + by].add(relation + relation_by)
            incident[tail + by].add(relation + relation_by + graph.num_relations)
    generator = torch.Generator().manual_seed(0)
    entities = torch.randn(
        graph.num_entities, 3, generator=generator, dtype=torch.float64
    )
    relations = torch.randn(
        2 * graph.num_relations, 3, generator=generator, dtype=torch.float64
    )

    by_entity, by_relation = NeighbourhoodMeans(graph)(entities, relations)
    for entity in range(graph.num_entities):
        torch.testing.assert_close(
            by_entity[entity], entities[sorted(around[entity])].mean(0)
        )
        found = sorted(incident[entity])
        expected = relations[found].mean(0) if found else torch.zeros(3).double()
        torch.testing.assert_close(by_relation[entity], expected)
