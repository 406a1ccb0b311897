"""AliNet and its objective against transcriptions of their equations, entity by entity."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu, normalize

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.encoders.alinet import (
    AliNet,
    AliNetLayer,
    AliNetObjective,
    RelationConsistency,
    transferred_triples,
)
from emea.encoders.iptranse import two_hop_pairs
from emea.encoders.joint_graph import join_graphs
from emea.fit.optimisation_step import GraphedStep, GraphMemory, OptimisationStep

Around = dict[int, list[int]]

LINKS = torch.tensor([[0, 9], [1, 11], [2, 10], [3, 12], [4, 13], [5, 13]])


def neighbourhoods(pairs: list[tuple[int, int]], size: int) -> Around:
    around = {i: {i} for i in range(size)}
    for left, right in pairs:
        around[left].add(right)
        around[right].add(left)
    return {i: sorted(found) for i, found in around.items()}


def transcribed_layer(
    layer: AliNetLayer, x: Tensor, near: Around, far: Around
) -> Tensor:
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


def looped_transfer(
    triples: list[list[int]], links: list[list[int]]
) -> set[tuple[int, ...]]:
    partner: dict[int, int] = {}
    for source, target in links:
        partner.setdefault(source, target)
        partner.setdefault(target, source)
    joined = {(head, tail) for head, _, tail in triples}
    return {
        (partner[head], relation, partner[tail])
        for head, relation, tail in triples
        if head in partner
        and tail in partner
        and (partner[head], partner[tail]) not in joined
    }


def structure(
    pair: GraphPair, links: list[list[int]], num_common: int
) -> tuple[Around, Around]:
    graph = join_graphs(pair)
    triples = graph.triples()
    direct = [*triples.tolist(), *map(list, looped_transfer(triples.tolist(), links))]
    distant: list[tuple[int, int]] = []
    for side in (triples[:, 0] < graph.num_source, triples[:, 0] >= graph.num_source):
        distant += [
            (h, t) for h, t in two_hop_pairs(triples[side], num_common).tolist()
        ]
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


def test_graphs_without_triples() -> None:
    graph = KnowledgeGraph(np.zeros((0, 3)), 2, 1)
    encoder = AliNet(
        join_graphs(GraphPair("bare", graph, graph, np.zeros((0, 2)))),
        [4, 3, 2],
    )
    encoder().sum().backward()
    assert torch.isfinite(encoder.features.grad).all()  # type: ignore[arg-type]


PARTNER = dict(LINKS.tolist())


def make_encoder(make_pair: Any, seed: int = 0) -> AliNet:
    torch.manual_seed(seed)
    encoder = AliNet(join_graphs(make_pair(seed)), [5, 4, 3]).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.normal_(0, 0.7)
    return encoder


def looped_loss(objective: AliNetObjective, encoder: AliNet, size: int) -> Tensor:
    """Drawn in the objective's order: links, false targets, false sources."""
    rows = encoder()
    picked = torch.randint(len(LINKS), (size,))
    of_source = torch.randint(
        objective.near_targets.shape[1], (size, objective.num_negatives)
    )
    of_target = torch.randint(
        objective.near_sources.shape[1], (size, objective.num_negatives)
    )
    total = rows.new_zeros(())
    for i, link in enumerate(picked.tolist()):
        source, target = LINKS[link].tolist()
        total = total + (rows[source] - rows[target]).square().sum()
        false = [(source, int(objective.near_targets[link, c])) for c in of_source[i]]
        false += [(int(objective.near_sources[link, c]), target) for c in of_target[i]]
        for a, b in false:
            if PARTNER.get(a) != b:
                cost = torch.relu(objective.margin - (rows[a] - rows[b]).square().sum())
                total = total + objective.balance * cost
    # six relations: less than two triples each in a batch of up to 11
    window = size_of_batch // 6 if (size_of_batch := objective.batch_size) >= 12 else 50
    return total + objective.relation_weight * window * encoder.consistency(rows)


@pytest.mark.parametrize("batch_size", [2, 6, 50])
@pytest.mark.parametrize("relation_weight", [0.0, 0.02])
def test_loss_and_gradient(
    make_pair: Any, batch_size: int, relation_weight: float
) -> None:
    encoder = make_encoder(make_pair)
    objective = AliNetObjective(
        batch_size=batch_size,
        num_negatives=4,
        relation_weight=relation_weight,
    )
    objective.epsilon = 0.5
    objective.before_step(encoder, LINKS, 0)
    parameters = list(encoder.parameters())
    torch.manual_seed(5)
    loss = objective(encoder, LINKS)
    torch.manual_seed(5)
    expected = looped_loss(objective, encoder, min(batch_size, 6))
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-10)
    found = torch.autograd.grad(loss, parameters)
    wanted = torch.autograd.grad(expected, parameters)
    for left, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-9)


def test_links_are_drawn_by_their_weights(make_pair: Any) -> None:
    encoder = make_encoder(make_pair)
    objective = AliNetObjective(balance=0.0, relation_weight=0.0)
    objective.before_step(encoder, LINKS, 0)
    objective.weigh(torch.tensor([0.0, 0.0, 1.0, 0.0, 2.0, 0.0]))
    rows = encoder()
    apart = (rows[LINKS[:, 0]] - rows[LINKS[:, 1]]).square().sum(1)
    # six places, in proportion
    torch.testing.assert_close(objective(encoder, LINKS), 2 * apart[2] + 4 * apart[4])


def test_links_are_no_negatives(make_pair: Any) -> None:
    encoder = make_encoder(make_pair)
    objective = AliNetObjective(balance=1.0, relation_weight=0.0)
    objective.before_step(encoder, LINKS, 0)
    # every negative on offer is the link itself
    objective.near_targets = LINKS[:, 1:].int()
    objective.near_sources = LINKS[:, :1].int()
    torch.manual_seed(0)
    loss = objective(encoder, LINKS)
    torch.manual_seed(0)
    source, target = LINKS[torch.randint(6, (6,))].T
    rows = encoder()
    torch.testing.assert_close(loss, (rows[source] - rows[target]).square().sum())


def test_nearest_are_those_of_a_loop(make_pair: Any) -> None:
    encoder = make_encoder(make_pair)
    objective = AliNetObjective()
    objective.epsilon, objective.refresh_every = 0.6, 1
    objective.before_step(encoder, LINKS, 0)
    kept = objective.near_targets, objective.near_sources
    objective.before_step(encoder, LINKS, 1)
    # graphs replay on the memory they were captured with
    assert (objective.near_targets, objective.near_sources) == kept
    last = normalize(encoder.layer_outputs()[-1].detach())
    for link, (source, target) in enumerate(LINKS.tolist()):
        targets = sorted(range(9, 19), key=lambda j: -float(last[source] @ last[j]))
        sources = sorted(range(9), key=lambda j: -float(last[target] @ last[j]))
        assert sorted(objective.near_targets[link].tolist()) == sorted(targets[:4])
        assert sorted(objective.near_sources[link].tolist()) == sorted(sources[:3])


def test_negatives_are_random_until_the_first_search(make_pair: Any) -> None:
    encoder = make_encoder(make_pair)
    objective = AliNetObjective(batch_size=2)
    objective.epsilon, objective.refresh_every = 0.5, 2
    objective.before_step(encoder, LINKS, 0)
    assert objective.near_targets.shape == (6, 5)
    assert set(objective.near_targets.flatten().tolist()) <= set(range(9, 19))
    assert set(objective.near_sources.flatten().tolist()) <= set(range(9))
    seen = [objective.near_targets.clone()]
    for step in range(1, 14):
        with torch.no_grad():
            encoder.features.normal_()
        objective.before_step(encoder, LINKS, step)
        seen.append(objective.near_targets.clone())
    changed = [
        step for step in range(1, 14) if not torch.equal(seen[step], seen[step - 1])
    ]
    # six links in batches of two: an epoch has three steps
    assert changed == [6, 12]


@pytest.mark.parametrize(
    ("num_links", "steps"), [(1, 1), (2999, 1), (5999, 1), (6000, 2)]
)
def test_steps_of_an_epoch(num_links: int, steps: int) -> None:
    assert AliNetObjective().steps_per_epoch(num_links) == steps


@pytest.mark.gpu
def test_captured_steps_see_what_is_written_between_them(
    make_pair: Any, cuda: torch.device
) -> None:
    torch.manual_seed(0)
    encoder = AliNet(join_graphs(make_pair()), [5, 4, 3]).to(cuda)
    objective = AliNetObjective(margin=10.0, balance=1.0, relation_weight=0.0)
    objective.epsilon, objective.refresh_every = 0.5, 4
    links = LINKS.to(cuda)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.0)
    step = OptimisationStep(partial(objective, encoder, links), optimizer)
    step = GraphedStep(step, [optimizer], GraphMemory())
    losses = []
    for index in range(24):
        objective.before_step(encoder, links, index)
        if index == 20:  # from here on every negative on offer is the link itself
            objective.near_targets.copy_(links[:, 1:].expand_as(objective.near_targets))
            objective.near_sources.copy_(links[:, :1].expand_as(objective.near_sources))
        losses.append(float(step()))
    assert len(set(losses[:20])) == 20
    # six links of squared distance 4 at most; 120 false pairs of 6 at least, some links apart
    assert max(losses[20:]) <= 24 < 100 < min(losses[:20])


def looped(rows: Tensor, triples: IntArray) -> Tensor:
    total = rows.new_zeros(())
    for relation in sorted(set(triples[:, 1].tolist())):
        mine = [(h, t) for h, r, t in triples.tolist() if r == relation]
        differences = [rows[h] - rows[t] for h, t in mine]
        direction = normalize(torch.stack(differences).mean(0), dim=0)
        for difference in differences:
            total = total + (difference - direction).square().sum() / len(mine)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_relation_loss_and_gradient(make_pair: Any, seed: int) -> None:
    graph = join_graphs(make_pair(seed))
    triples = graph.triples()
    # a relation of loops alone has no direction
    triples = np.concatenate([triples, [[4, graph.num_relations, 4]]])
    torch.manual_seed(seed)
    rows = torch.randn(graph.num_entities, 5, dtype=torch.float64, requires_grad=True)
    twin = rows.detach().clone().requires_grad_()
    loss = RelationConsistency(triples, graph.num_entities, graph.num_relations + 2)(
        rows
    )
    expected = looped(twin, triples)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-10)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(rows.grad, twin.grad, rtol=0, atol=1e-10)


def test_without_triples() -> None:
    rows = torch.randn(3, 2, requires_grad=True)
    loss = RelationConsistency(np.zeros((0, 3), dtype=np.int64), 3, 2)(rows)
    loss.backward()
    assert float(loss.detach()) == 0
    assert not rows.grad.any()  # type: ignore[union-attr]
