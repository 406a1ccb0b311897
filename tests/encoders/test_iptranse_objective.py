"""IPTransE's losses against loops over the same random draws, and its soft alignments."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.encoders.iptranse import IPTransE
from emea.encoders.iptranse_objective import IPTransEObjective, random_neighbour
from emea.encoders.joint_graph import join_graphs
from emea.fit.optimisation_step import GraphedStep, OptimisationStep

LINKS = torch.tensor([[3, 12], [1, 11], [0, 9]])


def make_both(make_pair: Any, seed: int = 0, **settings: Any) -> tuple[IPTransE, IPTransEObjective]:
    torch.manual_seed(seed)
    encoder = IPTransE(join_graphs(make_pair(seed)), 4).double()
    objective = IPTransEObjective(**settings)
    objective.attach(encoder)
    objective.double()
    objective.before_step(encoder, LINKS, 0)
    return encoder, objective


def align_softly(objective: IPTransEObjective, pairs: list[tuple[int, int, float]]) -> None:
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
        versions.append((int(objective.soft_partner[h]), t, float(objective.soft_weight[h])))
        versions.append((h, int(objective.soft_partner[t]), float(objective.soft_weight[t])))
        for head, tail, weight in versions:
            near = (rows[head] + relations[r] - rows[tail]).square().sum()
            wrong = (rows[false], rows[tail]) if at_head[i] else (rows[head], rows[false])
            far = (wrong[0] + relations[r] - wrong[1]).square().sum()
            total = total + weight * torch.relu(objective.margin + near - far)
    num_paths = len(encoder.paths)
    size = max(1, num_paths // -(-num_triples // objective.batch_size))
    picked = torch.randint(num_paths, (size,))
    false_relations = torch.randint(6, (size,))
    for i, path in enumerate(picked.tolist()):
        r1, r2, r = encoder.paths[path].tolist()
        near = (relations[r1] + relations[r2] - relations[r]).square().sum()
        far = (relations[r1] + relations[r2] - relations[false_relations[i]]).square().sum()
        cost = torch.relu(objective.margin + near - far) / int(encoder.path_ends[path])
        total = total + objective.path_weight * cost
    return total


@pytest.mark.parametrize("batch_size", [3, 16, 500])
@pytest.mark.parametrize("margin", [0.5, 4.0])
@pytest.mark.parametrize("soft", [False, True])
def test_loss_and_gradient(make_pair: Any, batch_size: int, margin: float, soft: bool) -> None:
    encoder, objective = make_both(make_pair, margin=margin, batch_size=batch_size, path_weight=0.3)
    if soft:
        align_softly(objective, [(2, 10, 0.75), (4, 14, 0.9)])
    torch.manual_seed(5)
    loss = objective(encoder, LINKS)
    torch.manual_seed(5)
    expected = looped_loss(objective, encoder)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-10)
    parameters = list(encoder.parameters())
    found = torch.autograd.grad(loss, parameters)
    wanted = torch.autograd.grad(expected, parameters)
    for left, right in zip(found, wanted, strict=True):
        assert right.any()
        torch.testing.assert_close(left, right, rtol=0, atol=1e-10)


def looped_alignments(encoder: IPTransE, threshold: float) -> dict[int, tuple[int, float]]:
    rows = encoder().detach()
    linked = set(LINKS.flatten().tolist())
    sources = [i for i in range(9) if i not in linked]
    targets = [j for j in range(9, 19) if j not in linked]
    best = {i: max(targets, key=lambda j, i=i: float(rows[i] @ rows[j])) for i in sources}
    back = {j: max(sources, key=lambda i, j=j: float(rows[i] @ rows[j])) for j in targets}
    found = {}
    for i, j in best.items():
        score = float(rows[i] @ rows[j])
        if back[j] == i and score > threshold:
            found[i], found[j] = (j, score), (i, score)
    return found


@pytest.mark.parametrize("threshold", [-1.0, 0.5, 0.8])
def test_soft_alignments_are_those_of_a_loop(make_pair: Any, threshold: float) -> None:
    encoder, objective = make_both(
        make_pair, batch_size=500, bootstrap_every=1, threshold=threshold
    )
    align_softly(objective, [(2, 10, 0.75)])
    buffers = objective.soft_partner, objective.soft_weight
    objective.before_step(encoder, LINKS, 1)
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
    encoder, objective = make_both(make_pair, batch_size=500, bootstrap_every=1, threshold=-1.0)
    everyone = torch.stack([torch.arange(9), torch.arange(9) + 9], dim=1)
    objective.before_step(encoder, everyone, 1)
    assert not objective.soft_weight.any()


def test_searches_come_at_their_interval_and_fits_start_without(make_pair: Any) -> None:
    encoder, objective = make_both(make_pair, batch_size=20, bootstrap_every=2, threshold=-1.0)
    steps = objective.steps_per_epoch(3)
    assert steps == -(-len(encoder.triples) // 20) > 1
    seen = []
    for step in range(4 * steps + 1):
        with torch.no_grad():
            encoder.entities.normal_()
        before = objective.soft_weight.clone()
        objective.before_step(encoder, LINKS, step)
        seen.append(not torch.equal(before, objective.soft_weight))
    assert [step for step, changed in enumerate(seen) if changed] == [2 * steps, 4 * steps]
    objective.before_step(encoder, LINKS[:1], 0)
    assert not objective.soft_weight.any()
    assert encoder.row_of.tolist() == [*range(12), 3, *range(13, 19)]


def test_without_bootstrap_nothing_is_searched(make_pair: Any) -> None:
    encoder, objective = make_both(make_pair, batch_size=500, bootstrap_every=None, threshold=-1.0)
    for step in range(1, 300):
        objective.before_step(encoder, LINKS, step)
    assert not objective.soft_weight.any()


def test_random_neighbours_are_of_the_own_graph() -> None:
    torch.manual_seed(0)
    drawn = random_neighbour(torch.tensor([0, 3]).repeat(4000), 3, 8)
    counts = torch.bincount(drawn[::2], minlength=8), torch.bincount(drawn[1::2], minlength=8)
    assert not counts[0][3:].any()
    assert not counts[1][:3].any()
    assert counts[0][:3].min() > 4000 / 3 * 0.85
    assert counts[1][3:].min() > 4000 / 5 * 0.85


def test_graphs_without_triples() -> None:
    graph = KnowledgeGraph(np.zeros((0, 3)), 2, 1)
    encoder = IPTransE(join_graphs(GraphPair("bare", graph, graph, np.zeros((0, 2)))), 3)
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
    objective, links = IPTransEObjective(bootstrap_every=4, threshold=-1.0), LINKS.to(cuda)
    objective.attach(encoder)
    objective.to(cuda)
    optimizer = torch.optim.Adagrad(encoder.parameters(), lr=0.0)
    step = GraphedStep(OptimisationStep(partial(objective, encoder, links), optimizer))
    losses = []
    for index in range(24):
        objective.before_step(encoder, links, index)
        if index == 20:  # from here on soft alignments outweigh all else
            objective.soft_weight.fill_(1e6)
        losses.append(float(step()))
    assert len(set(losses)) == len(losses)
    assert min(losses[20:]) > 1e3 * max(losses[:20])
