"""IPTransE: paths of the graphs, shared rows, and the objective against loops."""

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.encoders.iptranse import (
    IPTransE,
    IPTransEObjective,
    composed_relations,
    consecutive_triples,
    random_neighbour,
    two_hop_pairs,
)
from emea.encoders.joint_graph import join_graphs
from emea.fit.optimisation_step import GraphedStep, GraphMemory, OptimisationStep

LINKS = torch.tensor([[3, 12], [1, 11], [0, 9], [5, 12]])


def make_encoder(make_pair: Any, dim: int = 4) -> IPTransE:
    torch.manual_seed(0)
    return IPTransE(join_graphs(make_pair()), dim)


def test_linked_entities_share_a_row(make_pair: Any) -> None:
    encoder = make_encoder(make_pair)
    encoder.share(LINKS)
    rows = encoder()
    own = normalize(encoder.entities)
    shared = {9: 0, 11: 1, 12: 3}
    for entity in range(19):
        assert torch.equal(rows[entity], own[shared.get(entity, entity)]), entity


def test_both_ends_train_the_shared_row(make_pair: Any) -> None:
    encoder = make_encoder(make_pair).double()
    encoder.share(LINKS)
    weights = torch.randn(19, 4, dtype=torch.float64)
    (encoder() * weights).sum().backward()
    twin = encoder.entities.detach().clone().requires_grad_()
    (normalize(twin[3:4]) * (weights[3] + weights[12])).sum().backward()
    grads = encoder.entities.grad
    assert grads is not None
    assert twin.grad is not None
    torch.testing.assert_close(grads[3], twin.grad[3])
    assert not grads[[9, 11, 12]].any()


def test_new_links_replace_the_old_ones(make_pair: Any) -> None:
    encoder = make_encoder(make_pair)
    alone = encoder()
    encoder.share(LINKS)
    buffer = encoder.row_of
    encoder.share(LINKS[1:2])
    assert encoder.row_of is buffer
    assert encoder.row_of.tolist() == [*range(11), 1, *range(12, 19)]
    encoder.share(LINKS[:0])
    assert torch.equal(encoder(), alone)


def test_saved_weights_say_whose_rows_they_are(make_pair: Any) -> None:
    encoder, other = make_encoder(make_pair), make_encoder(make_pair)
    encoder.share(LINKS)
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(encoder(), other())
    assert set(encoder.state_dict()) == {"entities", "relations", "row_of"}


ONE_TO_ONE = torch.tensor([[3, 12], [1, 11], [0, 9]])


def make_both(
    make_pair: Any, seed: int = 0, **settings: Any
) -> tuple[IPTransE, IPTransEObjective]:
    torch.manual_seed(seed)
    encoder = IPTransE(join_graphs(make_pair(seed)), 4).double()
    objective = IPTransEObjective(**settings)
    objective.attach(encoder)
    objective.double()
    objective.before_step(encoder, ONE_TO_ONE, 0)
    return encoder, objective


def align_softly(
    objective: IPTransEObjective, pairs: list[tuple[int, int, float]]
) -> None:
    for source, target, weight in pairs:
        objective.soft_partner[source], objective.soft_partner[target] = target, source
        objective.soft_weight[source] = objective.soft_weight[target] = weight


def looped_loss(objective: IPTransEObjective, encoder: IPTransE) -> Tensor:
    """Drawn in the objective's order: triples, false entities, ends, paths, false relations."""
    relations, num_triples = normalize(encoder.relations), len(encoder.triples)
    rows = [normalize(encoder.entities[encoder.row_of[i]], dim=0) for i in range(19)]
    size = min(objective.batch_size, num_triples)
    picked = torch.randint(num_triples, (size,))
    drawn = torch.randint(2**62, (size,))
    at_head = torch.rand(size) < 0.5
    total = relations.new_zeros(())
    for i, triple in enumerate(encoder.triples[picked].tolist()):
        h, r, t = triple
        false = int(drawn[i]) % 9 if h < 9 else 9 + int(drawn[i]) % 10
        versions = [(h, t, 1.0)]
        versions.append(
            (int(objective.soft_partner[h]), t, float(objective.soft_weight[h]))
        )
        versions.append(
            (h, int(objective.soft_partner[t]), float(objective.soft_weight[t]))
        )
        for head, tail, weight in versions:
            near = (rows[head] + relations[r] - rows[tail]).square().sum()
            wrong = (
                (rows[false], rows[tail]) if at_head[i] else (rows[head], rows[false])
            )
            far = (wrong[0] + relations[r] - wrong[1]).square().sum()
            total = total + weight * torch.relu(objective.margin + near - far)
    num_paths = len(encoder.paths)
    size = max(1, num_paths // -(-num_triples // objective.batch_size))
    picked = torch.randint(num_paths, (size,))
    false_relations = torch.randint(6, (size,))
    for i, path in enumerate(picked.tolist()):
        r1, r2, r = encoder.paths[path].tolist()
        near = (relations[r1] + relations[r2] - relations[r]).square().sum()
        far = (
            (relations[r1] + relations[r2] - relations[false_relations[i]])
            .square()
            .sum()
        )
        cost = torch.relu(objective.margin + near - far) / int(encoder.path_ends[path])
        total = total + objective.path_weight * cost
    return total


@pytest.mark.parametrize("batch_size", [3, 16, 500])
@pytest.mark.parametrize("margin", [0.5, 4.0])
@pytest.mark.parametrize("soft", [False, True])
def test_loss_and_gradient(
    make_pair: Any, batch_size: int, margin: float, soft: bool
) -> None:
    encoder, objective = make_both(
        make_pair, margin=margin, batch_size=batch_size, path_weight=0.3
    )
    if soft:
        align_softly(objective, [(2, 10, 0.75), (4, 14, 0.9)])
    torch.manual_seed(5)
    loss = objective(encoder, ONE_TO_ONE)
    torch.manual_seed(5)
    expected = looped_loss(objective, encoder)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-10)
    parameters = list(encoder.parameters())
    found = torch.autograd.grad(loss, parameters)
    wanted = torch.autograd.grad(expected, parameters)
    for left, right in zip(found, wanted, strict=True):
        assert right.any()
        torch.testing.assert_close(left, right, rtol=0, atol=1e-10)


def looped_alignments(
    encoder: IPTransE, threshold: float
) -> dict[int, tuple[int, float]]:
    rows = encoder().detach()
    linked = set(ONE_TO_ONE.flatten().tolist())
    sources = [i for i in range(9) if i not in linked]
    targets = [j for j in range(9, 19) if j not in linked]
    best = {
        i: max(targets, key=lambda j, i=i: float(rows[i] @ rows[j])) for i in sources
    }
    back = {
        j: max(sources, key=lambda i, j=j: float(rows[i] @ rows[j])) for j in targets
    }
    found = {}
    for i, j in best.items():
        score = float(rows[i] @ rows[j])
        if back[j] == i and score > threshold:
            found[i], found[j] = (j, score), (i, score)
    return found


@pytest.mark.parametrize("threshold", [-1.0, 0.5, 0.8])
def test_soft_alignments_are_those_of_a_loop(make_pair: Any, threshold: float) -> None:
    encoder, objective = make_both(make_pair, batch_size=500, threshold=threshold)
    objective.bootstrap_every = 1
    align_softly(objective, [(2, 10, 0.75)])
    buffers = objective.soft_partner, objective.soft_weight
    objective.before_step(encoder, ONE_TO_ONE, 1)
    # graphs replay on the memory they were captured with
    assert objective.soft_partner is buffers[0]
    assert objective.soft_weight is buffers[1]
    expected = looped_alignments(encoder, threshold)
    assert len(expected) > (4 if threshold < 0 else 0)
    for entity in range(19):
        partner, weight = expected.get(entity, (None, 0.0))
        assert float(objective.soft_weight[entity]) == pytest.approx(weight)
        if partner is not None:
            assert int(objective.soft_partner[entity]) == partner


def test_no_soft_alignment_without_free_entities(make_pair: Any) -> None:
    encoder, objective = make_both(make_pair, batch_size=500, threshold=-1.0)
    objective.bootstrap_every = 1
    everyone = torch.stack([torch.arange(9), torch.arange(9) + 9], dim=1)
    objective.before_step(encoder, everyone, 1)
    assert not objective.soft_weight.any()


def test_searches_come_at_their_interval_and_fits_start_without(make_pair: Any) -> None:
    encoder, objective = make_both(make_pair, batch_size=20, threshold=-1.0)
    objective.bootstrap_every = 2
    steps = objective.steps_per_epoch(3)
    assert steps == -(-len(encoder.triples) // 20) > 1
    seen = []
    for step in range(4 * steps + 1):
        with torch.no_grad():
            encoder.entities.normal_()
        before = objective.soft_weight.clone()
        objective.before_step(encoder, ONE_TO_ONE, step)
        seen.append(not torch.equal(before, objective.soft_weight))
    assert [step for step, changed in enumerate(seen) if changed] == [
        2 * steps,
        4 * steps,
    ]
    objective.before_step(encoder, ONE_TO_ONE[:1], 0)
    assert not objective.soft_weight.any()
    assert encoder.row_of.tolist() == [*range(12), 3, *range(13, 19)]


def test_random_neighbours_are_of_the_own_graph() -> None:
    torch.manual_seed(0)
    drawn = random_neighbour(torch.tensor([0, 3]).repeat(4000), 3, 8)
    counts = (
        torch.bincount(drawn[::2], minlength=8),
        torch.bincount(drawn[1::2], minlength=8),
    )
    assert not counts[0][3:].any()
    assert not counts[1][:3].any()
    assert counts[0][:3].min() > 4000 / 3 * 0.85
    assert counts[1][3:].min() > 4000 / 5 * 0.85


def test_graphs_without_triples() -> None:
    graph = KnowledgeGraph(np.zeros((0, 3)), 2, 1)
    encoder = IPTransE(
        join_graphs(GraphPair("bare", graph, graph, np.zeros((0, 2)))), 3
    )
    objective = IPTransEObjective()
    objective.attach(encoder)
    assert objective.steps_per_epoch(2) == 1
    loss = objective(encoder, torch.tensor([[0, 2]]))
    loss.backward()
    assert float(loss.detach()) == 0


@pytest.mark.gpu
def test_captured_steps_see_what_is_written_between_them(
    make_pair: Any, cuda: torch.device
) -> None:
    torch.manual_seed(0)
    encoder = IPTransE(join_graphs(make_pair()), 4).to(cuda)
    objective, links = IPTransEObjective(threshold=-1.0), ONE_TO_ONE.to(cuda)
    objective.bootstrap_every = 4
    objective.attach(encoder)
    objective.to(cuda)
    optimizer = torch.optim.Adagrad(encoder.parameters(), lr=0.0)
    step = OptimisationStep(partial(objective, encoder, links), optimizer)
    step = GraphedStep(step, [optimizer], GraphMemory())
    losses = []
    for index in range(24):
        objective.before_step(encoder, links, index)
        if index == 20:  # from here on soft alignments outweigh all else
            objective.soft_weight.fill_(1e6)
        losses.append(float(step()))
    assert len(set(losses)) == len(losses)
    assert min(losses[20:]) > 1e3 * max(losses[:20])


@st.composite
def triple_lists(draw: st.DrawFn) -> IntArray:
    """Distinct triples over few ids: loops, multi-edges and common patterns occur."""
    triple = st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5))
    drawn = draw(st.lists(triple, max_size=14, unique=True))
    return np.array(drawn, dtype=np.int64).reshape(-1, 3)


CHAIN = np.array([[0, 0, 1], [1, 0, 2], [1, 1, 2], [0, 2, 2], [2, 1, 3], [3, 3, 3]])
NOTHING = np.zeros((0, 3), dtype=np.int64)


@given(triple_lists())
@example(NOTHING)
@example(CHAIN)
def test_every_tail_meets_every_head(triples: IntArray) -> None:
    expected = [
        (i, j)
        for i, left in enumerate(triples.tolist())
        for j, right in enumerate(triples.tolist())
        if left[2] == right[0]
    ]
    first, second = consecutive_triples(triples)
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == expected


def looped_two_hops(triples: IntArray, num_common: int) -> list[tuple[int, int]]:
    joined = {(head, tail) for head, _, tail in triples.tolist()}
    paths = [
        (head, (r1, r2), end)
        for head, r1, middle in triples.tolist()
        for other, r2, end in triples.tolist()
        if middle == other and (head, end) not in joined
    ]
    counts = Counter(pattern for _, pattern, _ in paths)
    common = sorted(counts, key=lambda pattern: (-counts[pattern], pattern))[
        :num_common
    ]
    return sorted(
        {(head, end) for head, pattern, end in paths if pattern not in common}
    )


@given(triple_lists(), st.integers(0, 4))
@example(NOTHING, 5)
@example(CHAIN, 0)
@example(CHAIN, 1)
def test_two_hops(triples: IntArray, num_common: int) -> None:
    found = [tuple(pair) for pair in two_hop_pairs(triples, num_common).tolist()]
    assert found == looped_two_hops(triples, num_common)


def looped_compositions(triples: IntArray, max_ends: int) -> list[tuple[int, ...]]:
    listed = triples.tolist()
    num_tails = Counter((head, relation) for head, relation, _ in listed)
    return sorted(
        (r1, r2, r, num_tails[h, r1] * num_tails[m, r2])
        for h, r1, m in listed
        for m2, r2, t in listed
        for h3, r, t3 in listed
        if m == m2
        and (h, t) == (h3, t3)
        and num_tails[h, r1] * num_tails[m, r2] <= max_ends
    )


@given(triple_lists(), st.integers(1, 6))
@example(NOTHING, 1)
@example(CHAIN, 1)
@example(CHAIN, 100)
def test_compositions(triples: IntArray, max_ends: int) -> None:
    paths, num_ends = composed_relations(triples, max_ends)
    found = np.concatenate([paths, num_ends[:, None]], axis=1)
    assert sorted(map(tuple, found.tolist())) == looped_compositions(triples, max_ends)
