"""AliNet's loss against loops over the same random draws, and its search for negatives."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.encoders.alinet import AliNet
from emea.encoders.alinet_objective import AliNetObjective
from emea.encoders.joint_graph import join_graphs
from emea.fit.optimisation_step import GraphedStep, OptimisationStep

LINKS = torch.tensor([[0, 9], [1, 11], [2, 10], [3, 12], [4, 13], [5, 13]])
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
    of_source = torch.randint(objective.near_targets.shape[1], (size, objective.num_negatives))
    of_target = torch.randint(objective.near_sources.shape[1], (size, objective.num_negatives))
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
def test_loss_and_gradient(make_pair: Any, batch_size: int, relation_weight: float) -> None:
    encoder = make_encoder(make_pair)
    objective = AliNetObjective(
        batch_size=batch_size, num_negatives=4, epsilon=0.5, relation_weight=relation_weight
    )
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
    objective = AliNetObjective(epsilon=0.6, refresh_every=1)
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
    objective = AliNetObjective(batch_size=2, refresh_every=2, epsilon=0.5)
    objective.before_step(encoder, LINKS, 0)
    assert objective.near_targets.shape == (6, 5)
    assert set(objective.near_targets.flatten().tolist()) <= set(range(9, 19))
    assert set(objective.near_sources.flatten().tolist()) <= set(range(9))
    assert torch.equal(encoder.partners, objective.partners)
    seen = [objective.near_targets.clone()]
    for step in range(1, 14):
        with torch.no_grad():
            encoder.features.normal_()
        objective.before_step(encoder, LINKS, step)
        seen.append(objective.near_targets.clone())
    changed = [step for step in range(1, 14) if not torch.equal(seen[step], seen[step - 1])]
    # six links in batches of two: an epoch has three steps
    assert changed == [6, 12]


@pytest.mark.parametrize(("num_links", "steps"), [(1, 1), (2999, 1), (5999, 1), (6000, 2)])
def test_steps_of_an_epoch(num_links: int, steps: int) -> None:
    assert AliNetObjective().steps_per_epoch(num_links) == steps


def test_epsilon_is_a_share() -> None:
    with pytest.raises(ValueError, match="epsilon"):
        AliNetObjective(epsilon=1.0)


def test_training_brings_links_together(make_pair: Any) -> None:
    encoder = make_encoder(make_pair, 1).float()
    objective = AliNetObjective(refresh_every=5, epsilon=0.5, relation_weight=0.0)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    distances = []
    for step in range(60):
        objective.before_step(encoder, LINKS, step)
        optimizer.zero_grad()
        objective(encoder, LINKS).backward()
        optimizer.step()
        rows = encoder().detach()
        distances.append(float((rows[LINKS[:4, 0]] - rows[LINKS[:4, 1]]).norm(dim=1).mean()))
    assert distances[-1] < 0.75 * distances[0]


@pytest.mark.gpu
def test_captured_steps_see_what_is_written_between_them(
    make_pair: Any, cuda: torch.device
) -> None:
    torch.manual_seed(0)
    encoder = AliNet(join_graphs(make_pair()), [5, 4, 3]).to(cuda)
    objective = AliNetObjective(
        margin=10.0, balance=1.0, refresh_every=4, epsilon=0.5, relation_weight=0.0
    )
    links = LINKS.to(cuda)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.0)
    step = GraphedStep(OptimisationStep(partial(objective, encoder, links), optimizer))
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
