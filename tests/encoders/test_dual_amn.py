"""Dual-AMN and its objective against an edge-by-edge transcription of the equations."""

import math
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.encoders import dual_amn
from emea.encoders.dual_amn import (
    DualAMN,
    HardSampleObjective,
    ProxyMatching,
    hard_sample_losses,
)
from emea.encoders.joint_graph import join_graphs
from emea.fit.optimisation_step import GraphedStep, GraphMemory, OptimisationStep

from ..fit.small_fits import table_of_rows

Edges = list[dict[int, set[int]]]


def edges_of(pair: GraphPair) -> Edges:
    """Directed relations from each entity to each of its neighbours."""
    num_relations = pair.source.num_relations + pair.target.num_relations
    edges: Edges = [
        {} for _ in range(pair.source.num_entities + pair.target.num_entities)
    ]
    shifts = (0, 0), (pair.source.num_entities, pair.source.num_relations)
    for graph, (by, relation_by) in zip(
        (pair.source, pair.target), shifts, strict=True
    ):
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
            depths.append(
                torch.tanh(transcribed_layer(depths[-1], relations, edges, kernel))
            )
        outputs.append(
            transcribed_matching(encoder.matching[channel], torch.cat(depths, dim=1))
        )
    return torch.cat(outputs, dim=1)


def transcribed_layer(
    features: Tensor, relations: Tensor, edges: Edges, kernel: Tensor
) -> Tensor:
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


def test_dropout_comes_last_and_in_training_alone(make_pair: Any) -> None:
    torch.manual_seed(0)
    encoder = DualAMN(join_graphs(make_pair()), dim=20, dropout=0.5)
    dropped = encoder()
    full = encoder.eval()()
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * full[kept])
    assert 0.45 < kept.double().mean() < 0.55


@pytest.mark.gpu
def test_cuda_against_double_precision(
    make_pair: Any, assert_same_on_cuda: Any
) -> None:
    pair = make_pair(3, num_entities=60, num_relations=5, num_triples=400)
    reference = double_encoder(pair, 3, dim=20)
    assert_same_on_cuda(reference, DualAMN(join_graphs(pair), dim=20, dropout=0.0))


@pytest.mark.gpu
def test_steps_can_be_captured(cuda: torch.device) -> None:
    graph = join_graphs(synthetic_pair(num_entities=300))
    links = torch.stack(
        [torch.arange(60), torch.arange(60) + graph.num_source], dim=1
    ).to(cuda)
    start = DualAMN(graph, dropout=0.0).state_dict()
    losses = []
    for graphed in (False, True):
        encoder = DualAMN(graph, dropout=0.0)
        encoder.load_state_dict(start)
        encoder.to(cuda)
        optimizer = torch.optim.RMSprop(
            encoder.parameters(), lr=0.005, alpha=0.9, eps=1e-7
        )
        step = OptimisationStep(
            lambda e=encoder: HardSampleObjective()(e, links), optimizer
        )
        run = GraphedStep(step, [optimizer], GraphMemory()) if graphed else step
        losses.append([float(run()) for _ in range(6)])
    # the order of the batch and of atomic additions differs, and training amplifies it
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


NUM_ENTITIES = 30
LINKS = torch.stack(
    [torch.arange(7), torch.tensor([15, 29, 17, 18, 16, 20, 21])], dim=1
)


def looped_loss(
    rows: Tensor, links: Tensor, margin: float, scale: float, shift: float
) -> Tensor:
    """The loss link by link and entity by entity."""
    total = rows.new_zeros(())
    for source, target in links.tolist():
        near = (rows[source] - rows[target]).square().sum()
        for seen_from in (source, target):
            violations = []
            for entity in range(len(rows)):
                far = (rows[seen_from] - rows[entity]).square().sum()
                own = entity in (source, target)
                violations.append(rows.new_zeros(()) if own else near - far + margin)
            values = torch.stack(violations)
            mean = values.detach().mean()
            deviation = values.detach().sub(mean).square().mean().sqrt()
            total = total + torch.logsumexp(
                scale * (values - mean) / deviation + shift, dim=0
            )
    return total / len(links)


def value_and_gradient(loss: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    return loss.detach(), torch.autograd.grad(loss, rows)[0]


@pytest.mark.parametrize("per_block", [1, 100, 2**25])
@pytest.mark.parametrize(
    "settings", [(1.0, 30.0, 10.0), (3.0, 2.0, 0.0), (0.0, 0.5, -4.0)]
)
def test_loss_and_gradient(
    settings: tuple[float, float, float],
    per_block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dual_amn, "VALUES_PER_BLOCK", per_block)
    encoder = table_of_rows(NUM_ENTITIES, 5)
    found = value_and_gradient(
        HardSampleObjective(*settings)(encoder, LINKS), encoder.rows
    )
    wanted = value_and_gradient(
        looped_loss(encoder.rows, LINKS, *settings), encoder.rows
    )
    assert wanted[1].abs().max() > 0.1
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


def test_an_entity_in_several_pairs_gathers_their_gradients() -> None:
    links = torch.tensor([[0, 15], [0, 16], [1, 15], [0, 15]])
    encoder = table_of_rows(NUM_ENTITIES, 5)
    found = value_and_gradient(HardSampleObjective()(encoder, links), encoder.rows)
    wanted = value_and_gradient(
        looped_loss(encoder.rows, links, 1.0, 30.0, 10.0), encoder.rows
    )
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


def test_single_precision_is_near() -> None:
    table = table_of_rows(400, 5).rows
    anchors, partners = torch.arange(50), torch.arange(200, 250)
    single = table.detach().float().requires_grad_()
    wanted = value_and_gradient(
        hard_sample_losses(table, anchors, partners, 1, 30), table
    )
    found = value_and_gradient(
        hard_sample_losses(single, anchors, partners, 1, 30), single
    )
    scale = float(wanted[1].abs().max())
    torch.testing.assert_close(found[0].double(), wanted[0], rtol=1e-5, atol=0)
    torch.testing.assert_close(found[1].double(), wanted[1], rtol=0, atol=1e-4 * scale)


def test_identical_rows_keep_the_loss_finite() -> None:
    rows = torch.ones(20, 3, requires_grad=True)
    loss = hard_sample_losses(rows, torch.tensor([0]), torch.tensor([10]), 0.0, 30.0)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(math.log(20))
    assert rows.grad is not None
    assert rows.grad.isfinite().all()


def test_no_more_than_a_block_of_distances_exists(
    monkeypatch: pytest.MonkeyPatch, largest_output: Any
) -> None:
    monkeypatch.setattr(dual_amn, "VALUES_PER_BLOCK", 2000)
    encoder = table_of_rows(300, 5)
    links = torch.stack([torch.arange(100), torch.arange(100) + 150], dim=1)
    with largest_output() as sizes:
        HardSampleObjective()(encoder, links).backward()
    assert sizes.largest <= 2000 < 300 * 100


@pytest.mark.parametrize(
    ("num_links", "num_steps", "size"),
    [(1, 1, 1), (7, 1, 7), (10, 1, 10), (11, 2, 6), (25, 3, 9), (30, 3, 10)],
)
def test_batches_of_an_epoch_are_of_one_size(
    num_links: int, num_steps: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Tensor] = []

    def spy(rows: Tensor, anchors: Tensor, partners: Tensor, *rest: float) -> Tensor:
        drawn.append(torch.stack([anchors, partners], dim=1))
        return rows.sum()

    monkeypatch.setattr(dual_amn, "hard_sample_losses", spy)
    objective = HardSampleObjective(batch_size=10)
    assert objective.steps_per_epoch(num_links) == num_steps
    links = torch.stack([torch.arange(num_links), torch.arange(num_links) + 100], dim=1)
    encoder = table_of_rows(200, 5)
    for _ in range(200):
        objective(encoder, links)
    for pairs in drawn:
        assert len(pairs) == 2 * size
        assert len(set(pairs[:, 0].tolist())) == 2 * size
        assert (pairs[:size, 1] - pairs[:size, 0] == 100).all()
        assert torch.equal(pairs[size:], pairs[:size].flip(1))
    seen = Counter(link for pairs in drawn for link in pairs[:size, 0].tolist())
    expected = 200 * size / num_links
    assert set(seen) == set(range(num_links))
    assert max(seen.values()) - expected <= 5 * math.sqrt(expected)


@pytest.mark.gpu
def test_losses_on_cuda_against_double_precision(
    cuda: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dual_amn, "VALUES_PER_BLOCK", 2000)
    exact = table_of_rows(400, 5).rows
    single = exact.detach().float().to(cuda).requires_grad_()
    pairs = torch.arange(50), torch.arange(200, 250)
    wanted = value_and_gradient(hard_sample_losses(exact, *pairs, 1.0, 30.0), exact)
    on_cuda = (ids.to(cuda) for ids in pairs)
    found = value_and_gradient(hard_sample_losses(single, *on_cuda, 1.0, 30.0), single)
    scale = float(wanted[1].abs().max())
    torch.testing.assert_close(found[0].double().cpu(), wanted[0], rtol=1e-5, atol=0)
    torch.testing.assert_close(
        found[1].double().cpu(), wanted[1], rtol=0, atol=1e-4 * scale
    )


def looped(module: ProxyMatching, rows: Tensor) -> Tensor:
    """Each entity's comparison with each proxy spelled out."""
    out = []
    for row in rows:
        scores = []
        for proxy in module.proxies:
            lengths = (row.square().sum() * proxy.square().sum()).sqrt()
            scores.append(row @ proxy / lengths if row.any() else row @ proxy)
        attention = torch.softmax(torch.stack(scores), dim=0)
        common = sum(
            a * proxy for a, proxy in zip(attention, module.proxies, strict=True)
        )
        apart = row - common
        gate = torch.sigmoid(apart @ module.gate + module.bias)
        out.append(gate * row + (1 - gate) * apart)
    return torch.stack(out)


@pytest.mark.parametrize("seed", range(3))
def test_proxies_are_those_of_the_equations(seed: int) -> None:
    torch.manual_seed(seed)
    module = ProxyMatching(6, 4).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    rows = torch.randn(9, 6, dtype=torch.float64)
    rows[3] = 0  # an entity without triples
    rows.requires_grad_()
    weights = torch.randn(9, 6, dtype=torch.float64)
    expected, result = looped(module, rows), module(rows)
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)
    inputs = dict(module.named_parameters())
    wanted = torch.autograd.grad((expected * weights).sum(), [*inputs.values(), rows])
    found = torch.autograd.grad((result * weights).sum(), [*inputs.values(), rows])
    some = torch.arange(9) != 3  # the cosine has no gradient at 0
    for name, left, right in zip([*inputs, "rows"], found, wanted, strict=True):
        kept = some if name == "rows" else slice(None)
        assert right.abs().max() > 1e-2, name
        torch.testing.assert_close(
            left[kept], right[kept], rtol=0, atol=1e-11, msg=name
        )
    assert found[-1].isfinite().all()
