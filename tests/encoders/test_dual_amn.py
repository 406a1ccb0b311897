"""Dual-AMN against an edge-by-edge transcription of its equations."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.encoders.dual_amn import DualAMN
from emea.encoders.hard_sample_objective import HardSampleObjective
from emea.encoders.joint_graph import join_graphs
from emea.fit.optimisation_step import GraphedStep, OptimisationStep

Edges = list[dict[int, set[int]]]


def edges_of(pair: GraphPair) -> Edges:
    """Directed relations from each entity to each of its neighbours."""
    num_relations = pair.source.num_relations + pair.target.num_relations
    edges: Edges = [{} for _ in range(pair.source.num_entities + pair.target.num_entities)]
    shifts = (0, 0), (pair.source.num_entities, pair.source.num_relations)
    for graph, (by, relation_by) in zip((pair.source, pair.target), shifts, strict=True):
        for head, relation, tail in graph.triples.tolist():
            head, relation, tail = head + by, relation + relation_by, tail + by
            edges[head].setdefault(tail, set()).add(relation)
            edges[tail].setdefault(head, set()).add(relation + num_relations)
    return edges


def transcription(encoder: DualAMN, edges: Edges) -> Tensor:
    """Dual-AMN's output, each message of each edge spelled out."""
    entities, relations = encoder.entities, encoder.relations
    starts: tuple[list[Tensor], list[Tensor]] = ([], [])
    for i, around in enumerate(edges):
        starts[0].append(entities[sorted({i, *around})].mean(0))
        incident = sorted(set().union(*around.values()))
        starts[1].append(relations[incident].mean(0) if incident else relations[0] * 0)
    outputs = []
    for channel, start in enumerate(starts):
        depths = [torch.tanh(torch.stack(start))]
        for kernel in encoder.relation_attention[channel]:
            depths.append(torch.tanh(transcribed_layer(depths[-1], relations, edges, kernel)))
        outputs.append(transcribed_matching(encoder.matching[channel], torch.cat(depths, dim=1)))
    return torch.cat(outputs, dim=1)


def transcribed_layer(features: Tensor, relations: Tensor, edges: Edges, kernel: Tensor) -> Tensor:
    rows = []
    for around in edges:
        messages, logits = [], []
        for j, together in around.items():
            r = normalize(relations[sorted(together)].mean(0), dim=0)
            messages.append(features[j] - 2 * (features[j] @ r) * r)
            logits.append(r @ kernel)
        summed = features[0] * 0
        if messages:
            summed = torch.softmax(torch.stack(logits), dim=0) @ torch.stack(messages)
        rows.append(summed)
    return torch.stack(rows)


def transcribed_matching(matching: Any, rows: Tensor) -> Tensor:
    attention = torch.softmax(normalize(rows) @ normalize(matching.proxies).t(), dim=1)
    apart = rows - attention @ matching.proxies
    gate = torch.sigmoid(apart @ matching.gate + matching.bias)
    return gate * rows + (1 - gate) * apart


def double_encoder(pair: GraphPair, seed: int, **kwargs: Any) -> DualAMN:
    """An encoder whose parameters are large enough for uneven attention."""
    torch.manual_seed(seed)
    encoder = DualAMN(join_graphs(pair), dropout=0.0, **kwargs).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.normal_(0, 1)
    return encoder


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_output_and_gradients_are_those_of_the_equations(
    make_pair: Any, seed: int, depth: int
) -> None:
    pair = make_pair(seed)
    encoder = double_encoder(pair, seed, dim=4, depth=depth, num_proxies=3)
    weights = torch.randn(19, 8 * (depth + 1), dtype=torch.float64)
    expected = transcription(encoder, edges_of(pair))
    result = encoder()
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-10)

    used = {name: p for name, p in encoder.named_parameters() if p.numel()}
    wanted = torch.autograd.grad((expected * weights).sum(), list(used.values()))
    found = torch.autograd.grad((result * weights).sum(), list(used.values()))
    assert len(used) == (9 if depth else 8)
    for name, left, right in zip(used, found, wanted, strict=True):
        assert right.abs().max() > 1e-3, name
        torch.testing.assert_close(left, right, rtol=0, atol=1e-8, msg=name)


def test_initial_parameters_and_shapes(make_pair: Any) -> None:
    torch.manual_seed(0)
    encoder = DualAMN(join_graphs(make_pair()), dim=50, depth=2)
    assert encoder.entities.shape == (19, 50)
    assert encoder.relations.shape == (12, 50)
    assert 0.045 < encoder.entities.abs().max() <= 0.05
    assert 0.045 < encoder.relations.abs().max() <= 0.05
    glorot = (6 / 51) ** 0.5
    assert encoder.relation_attention.shape == (2, 2, 50)
    assert 0.9 * glorot < encoder.relation_attention.abs().max() <= glorot
    assert encoder().shape == (19, 300)
    own = {"entities", "relations", "relation_attention"}
    parts = {f"matching.{c}.{name}" for c in (0, 1) for name in ("proxies", "gate", "bias")}
    assert set(encoder.state_dict()) == own | parts
    assert encoder.matching[0].proxies.shape == (64, 150)


def test_dropout_comes_last_and_in_training_alone(make_pair: Any) -> None:
    torch.manual_seed(0)
    encoder = DualAMN(join_graphs(make_pair()), dim=20, dropout=0.5)
    dropped = encoder()
    full = encoder.eval()()
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * full[kept])
    assert 0.45 < kept.double().mean() < 0.55


@pytest.mark.gpu
def test_cuda_against_double_precision(make_pair: Any, assert_same_on_cuda: Any) -> None:
    pair = make_pair(3, num_entities=60, num_relations=5, num_triples=400)
    reference = double_encoder(pair, 3, dim=20)
    assert_same_on_cuda(reference, DualAMN(join_graphs(pair), dim=20, dropout=0.0))


@pytest.mark.gpu
def test_steps_can_be_captured(cuda: torch.device) -> None:
    graph = join_graphs(synthetic_pair(num_entities=300))
    links = torch.stack([torch.arange(60), torch.arange(60) + graph.num_source], dim=1).to(cuda)
    start = DualAMN(graph, dropout=0.0).state_dict()
    losses = []
    for graphed in (False, True):
        encoder = DualAMN(graph, dropout=0.0)
        encoder.load_state_dict(start)
        encoder.to(cuda)
        optimizer = torch.optim.RMSprop(encoder.parameters(), lr=0.005, alpha=0.9, eps=1e-7)
        step = OptimisationStep(lambda e=encoder: HardSampleObjective()(e, links), optimizer)
        run = GraphedStep(step) if graphed else step
        losses.append([float(run()) for _ in range(6)])
    # the order of the batch and of atomic additions differs, and training amplifies it
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
