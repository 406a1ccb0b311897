"""RREA and its margin loss against an edge-by-edge transcription of the equations."""

import functools
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.encoders import rrea
from emea.encoders.joint_graph import join_graphs
from emea.encoders.objective import drawn_links
from emea.encoders.rrea import RREA, MarginObjective

from ..fit.small_fits import table_of_rows

Neighbours = dict[int, dict[int, list[int]]]


def neighbours_of(pair: GraphPair) -> Neighbours:
    """Directed relations from each entity to each of its neighbours."""
    num_relations = pair.source.num_relations + pair.target.num_relations
    found: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    shifts = (0, 0), (pair.source.num_entities, pair.source.num_relations)
    for graph, (by, relation_by) in zip(
        (pair.source, pair.target), shifts, strict=True
    ):
        for head, relation, tail in graph.triples.tolist():
            found[head + by][tail + by].add(relation + relation_by)
            found[tail + by][head + by].add(relation + relation_by + num_relations)
    return {
        i: {j: sorted(rels) for j, rels in around.items()}
        for i, around in found.items()
    }


def transcription(
    encoder: RREA, neighbours: Neighbours, by_self: Tensor, opposite: bool = False
) -> Tensor:
    """RREA's output, each message of each edge spelled out.

    ``by_self`` is the receiving entity's part of the attention kernel, per layer. ``opposite``
    exchanges each relation of the relation channel with its inverse.
    """
    entities, relations = encoder.entities, encoder.relations
    half = len(relations) // 2
    of_channel = (
        torch.cat([relations[half:], relations[:half]]) if opposite else relations
    )
    entity_rows, relation_rows = [], []
    for i in range(len(entities)):
        around = neighbours.get(i, {})
        entity_rows.append(entities[sorted({i, *around})].mean(0))
        incident = sorted({r for rels in around.values() for r in rels})
        relation_rows.append(
            of_channel[incident].mean(0) if incident else relations[0] * 0
        )
    kernels = list(
        zip(
            by_self,
            encoder.neighbour_attention,
            encoder.relation_attention,
            strict=True,
        )
    )
    outputs = []
    for start in (torch.stack(entity_rows), torch.stack(relation_rows)):
        features = torch.relu(start)
        outputs.append(features)
        for kernel in kernels:
            features = torch.relu(
                transcribed_layer(features, relations, neighbours, kernel)
            )
            outputs.append(features)
    return torch.cat(outputs, dim=1)


def transcribed_layer(
    features: Tensor,
    relations: Tensor,
    neighbours: Neighbours,
    kernel: tuple[Tensor, Tensor, Tensor],
) -> Tensor:
    by_self, by_neighbour, by_relation = kernel
    rows = []
    for i in range(len(features)):
        messages, logits = [], []
        for j, rels in neighbours.get(i, {}).items():
            r = normalize(relations[rels].sum(0), dim=0)
            message = features[j] - 2 * (features[j] @ r) * r
            messages.append(message)
            logits.append(
                features[i] @ by_self + message @ by_neighbour + r @ by_relation
            )
        if messages:
            rows.append(
                torch.softmax(torch.stack(logits), dim=0) @ torch.stack(messages)
            )
        else:
            rows.append(features[i] * 0)
    return torch.stack(rows)


def double_encoder(pair: GraphPair, seed: int, **kwargs: Any) -> RREA:
    """An encoder whose parameters are large enough for uneven attention."""
    torch.manual_seed(seed)
    encoder = RREA(join_graphs(pair), dropout=0.0, **kwargs).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.normal_(0, 2)
    return encoder


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("depth", "opposite"), [(0, False), (1, False), (2, False), (0, True), (2, True)]
)
def test_output_and_gradients_are_those_of_the_equations(
    make_pair: Any, seed: int, depth: int, opposite: bool
) -> None:
    pair = make_pair(seed)
    encoder = double_encoder(
        pair, seed, dim=4, depth=depth, opposite_relations=opposite
    )
    weights = torch.randn(19, 8 * (depth + 1), dtype=torch.float64)
    by_self = torch.randn(depth, 4, dtype=torch.float64)

    expected = transcription(encoder, neighbours_of(pair), by_self, opposite)
    result = encoder()
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-10)

    parameters = dict(encoder.named_parameters())
    used = (
        parameters
        if depth
        else {name: parameters[name] for name in ("entities", "relations")}
    )
    wanted = torch.autograd.grad((expected * weights).sum(), list(used.values()))
    found = torch.autograd.grad((result * weights).sum(), list(used.values()))
    for name, left, right in zip(used, found, wanted, strict=True):
        assert right.abs().max() > 1e-3, name
        torch.testing.assert_close(left, right, rtol=0, atol=1e-8, msg=name)


def test_receiver_term_of_the_attention_cancels(make_pair: Any) -> None:
    pair = make_pair(1)
    encoder = double_encoder(pair, 1, dim=4)
    neighbours = neighbours_of(pair)
    by_self = torch.zeros(2, 4, dtype=torch.float64)
    without = transcription(encoder, neighbours, by_self)
    with_term = transcription(
        encoder, neighbours, by_self.normal_(0, 5).requires_grad_()
    )
    torch.testing.assert_close(with_term, without, rtol=0, atol=1e-10)
    with_term.square().sum().backward()
    assert by_self.grad is not None
    assert by_self.grad.abs().max() < 1e-8


def test_isolated_entities_keep_their_embedding_alone(make_pair: Any) -> None:
    encoder = double_encoder(make_pair(2), 2, dim=4)
    rows = encoder()
    torch.testing.assert_close(rows[-1, :4], torch.relu(encoder.entities[-1]))
    assert not rows[-1, 4:].any()


@pytest.mark.parametrize("num_relations", [0, 2])
def test_graphs_without_triples(num_relations: int) -> None:
    graph = KnowledgeGraph(np.zeros((0, 3)), 2, num_relations)
    encoder = double_encoder(
        GraphPair("bare", graph, graph, np.zeros((0, 2))), 0, dim=3
    )
    rows = encoder()
    rows.sum().backward()
    torch.testing.assert_close(rows[:, :3], torch.relu(encoder.entities))
    assert not rows[:, 3:].any()


def test_dropout_in_training_alone(make_pair: Any) -> None:
    torch.manual_seed(0)
    encoder = RREA(join_graphs(make_pair()), dim=20, dropout=0.5)
    dropped = encoder()
    full = encoder.eval()()
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * full[kept])
    assert 0.4 < kept.sum() / (full != 0).sum() < 0.6


def test_nothing_of_the_size_edges_by_dimension_exists(
    make_pair: Any, largest_output: Any
) -> None:
    graph = join_graphs(make_pair(num_entities=20, num_relations=1, num_triples=1500))
    dim = 64
    encoder = RREA(graph, dim=dim)
    assert graph.num_edges * dim > 2 * graph.num_entities * 6 * dim
    with largest_output() as sizes:
        encoder().square().sum().backward()
    assert graph.num_entities * 6 * dim <= sizes.largest < graph.num_edges * dim

    with largest_output() as control:
        encoder.entities[torch.from_numpy(graph.edge_cols)].sum().backward()
    assert control.largest == graph.num_edges * dim


@pytest.mark.gpu
def test_cuda_against_double_precision(
    make_pair: Any, assert_same_on_cuda: Any
) -> None:
    pair = make_pair(3, num_entities=60, num_relations=5, num_triples=400)
    reference = double_encoder(pair, 3, dim=20)
    assert_same_on_cuda(reference, RREA(join_graphs(pair), dim=20, dropout=0.0))


def looped_loss(
    rows: Tensor, links: Tensor, size: int, margin: float, keep_order: bool = False
) -> Tensor:
    """The loss pair by pair, drawing in the objective's order."""
    if keep_order:
        order = torch.arange(len(links)).roll(-int(torch.randint(len(links), (1,))))
    else:
        order = torch.randperm(len(links))
    false_source, false_target = torch.randint(len(rows), (2, size))
    total = rows.new_zeros(())
    for i in range(size):
        source, target = links[order[i % len(links)]]
        near = (rows[source] - rows[target]).abs().sum()
        far_target = (rows[source] - rows[false_target[i]]).abs().sum()
        far_source = (rows[false_source[i]] - rows[target]).abs().sum()
        total = total + torch.relu(margin + near - far_target)
        total = total + torch.relu(margin + near - far_source)
    return total / size


LINKS = torch.tensor([[0, 5], [1, 6], [2, 7], [4, 9]])


@pytest.mark.parametrize("batch_size", [None, 1, 3, 4, 7, 8])
@pytest.mark.parametrize("margin", [0.1, 3.0])
@pytest.mark.parametrize("keep_order", [False, True])
def test_loss_and_gradient(
    batch_size: int | None,
    margin: float,
    keep_order: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # links keep their order on a GPU
    draw = functools.partial(drawn_links, keep_order=keep_order)
    monkeypatch.setattr(rrea, "drawn_links", lambda *given: draw(*given[:3]))
    encoder, twin = table_of_rows(10, 3), table_of_rows(10, 3)
    torch.manual_seed(5)
    loss = MarginObjective(margin, batch_size)(encoder, LINKS)
    torch.manual_seed(5)
    expected = looped_loss(twin.rows, LINKS, batch_size or 10, margin, keep_order)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-12)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(encoder.rows.grad, twin.rows.grad, rtol=0, atol=1e-12)


def test_negatives_come_from_both_graphs() -> None:
    encoder = table_of_rows(10, 3)
    MarginObjective(margin=1e6, batch_size=500)(encoder, LINKS).backward()
    assert encoder.rows.grad is not None
    unlinked = encoder.rows.grad[[3, 8]]
    assert (unlinked != 0).all()


def test_weighted_links_count_by_their_places() -> None:
    encoder, twin = table_of_rows(10, 3), table_of_rows(10, 3)
    weights = torch.tensor([1.0, 0.25, 0.0, 0.5])
    objective = MarginObjective(margin=2.0)
    objective.weigh(weights)
    torch.manual_seed(3)
    loss = objective(encoder, LINKS)
    torch.manual_seed(3)
    picked = drawn_links(LINKS, 10, weights)
    false_source, false_target = torch.randint(10, (2, 10))
    rows = twin.rows
    expected = rows.new_zeros(())
    for i, (source, target) in enumerate(LINKS[picked].tolist()):
        near = (rows[source] - rows[target]).abs().sum()
        for a, b in ((source, false_target[i]), (false_source[i], target)):
            expected = (
                expected + torch.relu(2.0 + near - (rows[a] - rows[b]).abs().sum()) / 10
            )
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-12)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(encoder.rows.grad, twin.rows.grad, rtol=0, atol=1e-12)
