"""AliNet against a transcription of its equations, entity by entity."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu, normalize

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.encoders.alinet import AliNet, AliNetLayer, transferred_triples
from emea.encoders.iptranse import two_hop_pairs
from emea.encoders.joint_graph import join_graphs

Around = dict[int, list[int]]

LINKS = torch.tensor([[0, 9], [1, 11], [2, 10], [3, 12], [4, 13], [5, 13]])


def neighbourhoods(pairs: list[tuple[int, int]], size: int) -> Around:
    around = {i: {i} for i in range(size)}
    for left, right in pairs:
        around[left].add(right)
        around[right].add(left)
    return {i: sorted(found) for i, found in around.items()}


def transcribed_layer(layer: AliNetLayer, x: Tensor, near: Around, far: Around) -> Tensor:
    outputs = []
    for i in range(len(x)):
        total = layer.bias
        for j in near[i]:
            weight = (len(near[i]) * len(near[j])) ** -0.5
            total = total + weight * (x[j] @ layer.direct_kernel)
        one_hop = torch.tanh(total)
        outputs.append(one_hop)
        if not layer.distant:
            continue
        logits = []
        for j in far[i]:
            weight = (len(far[i]) * len(far[j])) ** -0.5
            mine = torch.tanh(x[i] @ layer.receiver @ x[i])
            other = torch.tanh(x[j] @ layer.sender @ x[j])
            logits.append(leaky_relu(weight * (mine + other), 0.2))
        attention = torch.softmax(torch.stack(logits), 0)
        mapped = torch.stack([x[j] @ layer.distant_kernel for j in far[i]])
        two_hop = torch.tanh(attention @ mapped)
        gate = torch.relu(torch.tanh(two_hop @ layer.gate))
        outputs[-1] = torch.tanh(gate * two_hop + (1 - gate) * one_hop)
    return torch.stack(outputs)


def transcription(encoder: AliNet, near: Around, far: Around) -> Tensor:
    outputs: list[Tensor] = [encoder.features]
    for layer in encoder.layers:
        assert isinstance(layer, AliNetLayer)
        outputs.append(transcribed_layer(layer, outputs[-1], near, far))
    rows = [
        torch.cat([normalize(part[i], dim=0) for part in (*outputs[1:], outputs[0])])
        for i in range(len(encoder.features))
    ]
    return torch.stack([normalize(row, dim=0) for row in rows])


def looped_transfer(triples: list[list[int]], links: list[list[int]]) -> set[tuple[int, ...]]:
    partner: dict[int, int] = {}
    for source, target in links:
        partner.setdefault(source, target)
        partner.setdefault(target, source)
    joined = {(head, tail) for head, _, tail in triples}
    return {
        (partner[head], relation, partner[tail])
        for head, relation, tail in triples
        if head in partner and tail in partner and (partner[head], partner[tail]) not in joined
    }


def structure(pair: GraphPair, links: list[list[int]], num_common: int) -> tuple[Around, Around]:
    graph = join_graphs(pair)
    triples = graph.triples()
    direct = [*triples.tolist(), *map(list, looped_transfer(triples.tolist(), links))]
    distant: list[tuple[int, int]] = []
    for side in (triples[:, 0] < graph.num_source, triples[:, 0] >= graph.num_source):
        distant += [(h, t) for h, t in two_hop_pairs(triples[side], num_common).tolist()]
    size = graph.num_entities
    near = neighbourhoods([(head, tail) for head, _, tail in direct], size)
    return near, neighbourhoods(distant, size)


def double_encoder(pair: GraphPair, seed: int, num_common: int = 1) -> AliNet:
    torch.manual_seed(seed)
    encoder = AliNet(join_graphs(pair), [5, 4, 3, 2], num_common).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.normal_(0, 0.8)
    return encoder


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("augmented", [False, True])
def test_output_and_gradients_are_those_of_the_equations(
    make_pair: Any, seed: int, augmented: bool
) -> None:
    pair = make_pair(seed, num_triples=10)
    encoder = double_encoder(pair, seed)
    if augmented:
        encoder.augment(LINKS)
    near, far = structure(pair, LINKS.tolist() if augmented else [], 1)
    assert any(len(found) > 1 for found in far.values())
    expected = transcription(encoder, near, far)
    result = encoder()
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-10)
    weights = torch.randn_like(expected)
    parameters = dict(encoder.named_parameters())
    wanted = torch.autograd.grad((expected * weights).sum(), list(parameters.values()))
    found = torch.autograd.grad((result * weights).sum(), list(parameters.values()))
    for name, left, right in zip(parameters, found, wanted, strict=True):
        assert right.abs().max() > 1e-5, name
        torch.testing.assert_close(left, right, rtol=0, atol=1e-8, msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_counterparts_of_joined_entities_are_joined(make_pair: Any, seed: int) -> None:
    encoder = double_encoder(make_pair(seed), seed)
    encoder.augment(LINKS)
    found = transferred_triples(encoder.triples, encoder.partners.numpy())
    expected = looped_transfer(encoder.triples.tolist(), LINKS.tolist())
    assert sorted(map(tuple, found.tolist())) == sorted(expected)
    assert expected


def test_new_links_replace_the_old_ones(make_pair: Any) -> None:
    pair = make_pair(1)
    encoder, fresh = double_encoder(pair, 0), double_encoder(pair, 0)
    plain = encoder()
    encoder.augment(LINKS)
    assert not torch.equal(encoder(), plain)
    encoder.augment(LINKS[:2])
    fresh.augment(LINKS[:2])
    assert torch.equal(encoder(), fresh())
    encoder.augment(LINKS[:0])
    assert torch.equal(encoder(), plain)


def test_saved_weights_bring_their_edges_along(make_pair: Any) -> None:
    pair = make_pair(1)
    encoder, other = double_encoder(pair, 0), double_encoder(pair, 1)
    encoder.augment(LINKS)
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(encoder(), other())


def test_initial_parameters_and_shapes(make_pair: Any) -> None:
    encoder = AliNet(join_graphs(make_pair()), [40, 30, 20])
    bound = (6 / (19 + 40)) ** 0.5
    assert 0.9 * bound < encoder.features.abs().max() <= bound
    rows = encoder()
    assert rows.shape == (19, 90)
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(19))
    assert [layer.distant for layer in encoder.layers] == [True, False]


def test_graphs_without_triples() -> None:
    graph = KnowledgeGraph(np.zeros((0, 3)), 2, 1)
    encoder = AliNet(join_graphs(GraphPair("bare", graph, graph, np.zeros((0, 2)))), [4, 3, 2])
    encoder().sum().backward()
    assert torch.isfinite(encoder.features.grad).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("dims", [[], [8]])
def test_a_layer_is_needed(make_pair: Any, dims: list[int]) -> None:
    with pytest.raises(ValueError, match="widths of the input and of each layer"):
        AliNet(join_graphs(make_pair()), dims)
