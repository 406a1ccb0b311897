"""Optimisation steps by hand, and CUDA graphs against eager steps."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import join_graphs
from emea.encoders.kernels.pair_distance import pair_distances
from emea.encoders.margin_objective import MarginObjective
from emea.encoders.optimisation_step import WARM_UP_STEPS, GraphedStep, OptimisationStep
from emea.encoders.rrea import RREA

# as a graph needs them: torch rounds otherwise where they are not, and Adam's first steps divide
# what is left of tiny gradients by their own size
OPTIMIZERS: list[Callable[..., torch.optim.Optimizer]] = [
    partial(torch.optim.RMSprop, lr=0.005, alpha=0.9, eps=1e-7, capturable=True),
    partial(torch.optim.Adam, lr=0.005, capturable=True),
]


def test_steps_are_those_of_gradient_descent() -> None:
    weight = nn.Parameter(torch.tensor(2.0))
    step = OptimisationStep(lambda: weight.square(), torch.optim.SGD([weight], lr=0.1))
    losses = [step() for _ in range(3)]
    # each step multiplies the weight by 1 - 2 * 0.1; gradients that piled up would not
    assert [float(loss) for loss in losses] == pytest.approx([4, 4 * 0.8**2, 4 * 0.8**4])
    assert float(weight.detach()) == pytest.approx(2 * 0.8**3)
    assert not any(loss.requires_grad for loss in losses)


def test_earlier_gradients_are_dropped() -> None:
    weight = nn.Parameter(torch.tensor(1.0))
    weight.grad = torch.tensor(100.0)
    OptimisationStep(lambda: 3 * weight, torch.optim.SGD([weight], lr=0.1))()
    assert float(weight.detach()) == pytest.approx(0.7)


def fixed_margin_loss(encoder: nn.Module, pairs: Tensor) -> Tensor:
    """A margin loss over the same pairs in every step."""
    rows = encoder()
    first, second, false = pairs
    near, far = pair_distances(rows, first, second), pair_distances(rows, first, false)
    return torch.relu(3 + near - far).mean()


@pytest.mark.gpu
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_graphed_steps_are_eager_steps(
    make_pair: Any, cuda: torch.device, optimizer: Callable[..., torch.optim.Optimizer]
) -> None:
    graph = join_graphs(make_pair(num_entities=60, num_triples=400))
    pairs = torch.randint(graph.num_entities, (3, 200), device=cuda)
    start = RREA(graph, dim=20, dropout=0.0).state_dict()
    losses = []
    for kind in (OptimisationStep, GraphedStep):
        encoder = RREA(graph, dim=20, dropout=0.0)
        encoder.load_state_dict(start)
        encoder.to(cuda)
        step = kind(partial(fixed_margin_loss, encoder, pairs), optimizer(encoder.parameters()))
        losses.append([float(step()) for _ in range(WARM_UP_STEPS + 12)])
    assert losses[1] == pytest.approx(losses[0], abs=1e-4)
    assert losses[0][-1] < losses[0][0] - 0.1


@pytest.mark.gpu
def test_replays_draw_new_numbers(make_pair: Any, cuda: torch.device) -> None:
    graph = join_graphs(make_pair(num_entities=60, num_triples=400))
    encoder = RREA(graph, dim=20, dropout=0.3).to(cuda)
    links = torch.stack([torch.arange(50), torch.arange(50) + 60], dim=1).to(cuda)
    loss = partial(MarginObjective(), encoder, links)
    step = GraphedStep(loss, torch.optim.SGD(encoder.parameters(), lr=0.0))
    losses = [float(step()) for _ in range(WARM_UP_STEPS + 10)]
    assert len(set(losses)) == len(losses)
