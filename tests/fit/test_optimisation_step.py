"""Optimisation steps by hand, and CUDA graphs against eager steps."""

import copy
import gc
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import join_graphs
from emea.encoders.rrea import RREA, MarginObjective
from emea.fit.optimisation_step import (
    GraphedStep,
    GraphMemory,
    MemberSteps,
    OptimisationStep,
)
from emea.kernels.pair_distance import pair_distances

# the usual epsilon makes steps of equal size from gradients that are rounding errors, so that
# differences of 1e-7, which atomic additions cause, grow to 0.02 within a few steps
GENTLE_OPTIMIZER = partial(
    torch.optim.RMSprop, lr=0.005, alpha=0.9, eps=0.01, capturable=True
)


def graphed(
    loss: Callable[[], Tensor],
    optimizer: torch.optim.Optimizer,
    memory: GraphMemory | None = None,
) -> GraphedStep:
    step = OptimisationStep(loss, optimizer)
    return GraphedStep(step, [optimizer], memory or GraphMemory())


def test_steps_are_those_of_gradient_descent() -> None:
    weight = nn.Parameter(torch.tensor(2.0))
    step = OptimisationStep(lambda: weight.square(), torch.optim.SGD([weight], lr=0.1))
    losses = [step() for _ in range(3)]
    # each step multiplies the weight by 1 - 2 * 0.1; gradients that piled up would not
    assert [float(loss) for loss in losses] == pytest.approx(
        [4, 4 * 0.8**2, 4 * 0.8**4]
    )
    assert float(weight.detach()) == pytest.approx(2 * 0.8**3)
    assert not any(loss.requires_grad for loss in losses)


def test_earlier_gradients_are_dropped() -> None:
    weight = nn.Parameter(torch.tensor(1.0))
    weight.grad = torch.tensor(100.0)
    OptimisationStep(lambda: 3 * weight, torch.optim.SGD([weight], lr=0.1))()
    assert float(weight.detach()) == pytest.approx(0.7)


def test_a_step_of_several_members_returns_all_losses() -> None:
    weights = [nn.Parameter(torch.tensor(start)) for start in (2.0, 3.0)]
    steps = [
        OptimisationStep(one.square, torch.optim.SGD([one], lr=0.1)) for one in weights
    ]
    joint = MemberSteps(steps)
    losses = torch.stack([joint() for _ in range(3)])
    expected = [[start**2 * 0.8 ** (2 * step) for start in (2, 3)] for step in range(3)]
    torch.testing.assert_close(losses, torch.tensor(expected))
    assert not losses.requires_grad


def fixed_margin_loss(encoder: nn.Module, pairs: Tensor) -> Tensor:
    """A margin loss over the same pairs in every step."""
    rows = encoder()
    first, second, false = pairs
    near, far = pair_distances(rows, first, second), pair_distances(rows, first, false)
    return torch.relu(3 + near - far).mean()


class FakeGraph:
    """Stands for a CUDA graph on a machine without a GPU; it records nothing."""

    num_alive = 0

    def __init__(self) -> None:
        FakeGraph.num_alive += 1
        self.events: list[Any] = []
        self.own_pool = object()

    def __del__(self) -> None:
        FakeGraph.num_alive -= 1

    def capture_begin(self, *pool: object) -> None:
        assert not gc.isenabled()
        self.own_pool = pool[0] if pool else self.own_pool
        self.events.append("begin")

    def capture_end(self) -> None:
        self.events.append("end")

    def pool(self) -> object:
        return self.own_pool

    def replay(self) -> None:
        self.events.append("replay")


@pytest.fixture
def fake_cuda(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """Replaces torch's CUDA functions; 8 bytes are free and 4 were in use at the peak."""
    functions = mock.Mock(mem_get_info=lambda: (8, 16), max_memory_allocated=lambda: 4)
    for name in (
        "synchronize",
        "empty_cache",
        "mem_get_info",
        "max_memory_allocated",
        "Stream",
    ):
        monkeypatch.setattr(torch.cuda, name, getattr(functions, name))
    monkeypatch.setattr(torch.cuda, "current_stream", functions.current_stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
    return functions


def test_graphs_share_one_stream_and_the_memory_of_the_last_one(
    fake_cuda: mock.Mock,
) -> None:
    memory = GraphMemory()
    pools = []
    for _ in range(3):
        weight = nn.Parameter(torch.tensor(2.0))
        step = graphed(weight.square, torch.optim.SGD([weight], lr=0.1), memory)
        for _ in range(3):
            step()
        graph: Any = step._graph
        assert graph.events == ["begin", "end", "replay", "replay"]
        pools.append(graph.pool())
        del graph, step
        assert FakeGraph.num_alive == 1
    assert len(set(pools)) == 1
    assert fake_cuda.Stream.call_count == 1
    assert not fake_cuda.empty_cache.called
    assert gc.isenabled()
    memory.release()
    assert FakeGraph.num_alive == 0


@pytest.mark.usefixtures("fake_cuda")
def test_a_failed_capture_is_ended() -> None:
    graphs: list[FakeGraph] = []

    def fail() -> Tensor:
        raise RuntimeError("in the step")

    def make() -> FakeGraph:
        graphs.append(FakeGraph())
        return graphs[-1]

    with (
        mock.patch.object(torch.cuda, "CUDAGraph", make),
        pytest.raises(RuntimeError, match="in the step"),
    ):
        GraphMemory().capture(fail)
    assert graphs[0].events == ["begin", "end"]
    assert gc.isenabled()


@pytest.mark.gpu
def test_graphs_in_the_same_memory_are_eager_steps(
    make_pair: Any, cuda: torch.device
) -> None:
    graph = join_graphs(make_pair(num_entities=60, num_triples=400))
    start = RREA(graph, dim=20, dropout=0.0).state_dict()
    memory, results, reserved = GraphMemory(), [], []
    for kind in (OptimisationStep, partial(graphed, memory=memory)):
        torch.manual_seed(0)
        encoder = RREA(graph, dim=20, dropout=0.0)
        encoder.load_state_dict(start)
        encoder.to(cuda)
        losses = []
        for num_pairs in (200, 333, 90, 333):
            pairs = torch.randint(graph.num_entities, (3, num_pairs), device=cuda)
            optimizer = GENTLE_OPTIMIZER(encoder.parameters())
            step = kind(partial(fixed_margin_loss, encoder, pairs), optimizer)
            losses += [float(step()) for _ in range(7)]
            del step
            encoder.zero_grad(set_to_none=True)
            reserved.append(torch.cuda.memory_reserved(cuda))
        results.append(losses)
    assert results[1] == pytest.approx(results[0], abs=1e-5)
    # further captures of the same size need no more memory
    assert reserved[-1] <= reserved[-3]


@pytest.mark.gpu
def test_members_on_their_own_streams_take_eager_steps(
    make_pair: Any, cuda: torch.device
) -> None:
    graph = join_graphs(make_pair(num_entities=60, num_triples=400))
    starts = [RREA(graph, dim=20, dropout=0.0).state_dict() for _ in range(3)]
    memory, results, reserved = GraphMemory(), [], []
    for is_joint in (False, True):
        torch.manual_seed(0)
        encoders = [RREA(graph, dim=20, dropout=0.0) for _ in starts]
        for encoder, start in zip(encoders, starts, strict=True):
            encoder.load_state_dict(start)
            encoder.to(cuda)
        losses = []
        for num_pairs in (200, 333, 90, 333, 333):
            pairs = torch.randint(graph.num_entities, (3, 3, num_pairs), device=cuda)
            steps = [
                OptimisationStep(
                    partial(fixed_margin_loss, *pair), GENTLE_OPTIMIZER(weights)
                )
                for *pair, weights in zip(
                    encoders, pairs, (one.parameters() for one in encoders), strict=True
                )
            ]
            step: Any = MemberSteps(steps)
            if is_joint:
                step = GraphedStep(
                    MemberSteps(steps, memory.member_streams(3)), [], memory
                )
            losses += [step().clone() for _ in range(7)]
            del step, steps
            for encoder in encoders:
                encoder.zero_grad(set_to_none=True)
            reserved.append(torch.cuda.memory_reserved(cuda))
        results.append(torch.stack(losses).cpu())
    assert results[0].shape == (35, 3)
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=1e-5)
    assert (results[0][6] < results[0][0] - 0.03).all()  # within the first fit
    # further captures of the same size need no more memory
    assert reserved[-1] <= reserved[-4]


@pytest.mark.gpu
def test_replays_of_members_draw_different_numbers(
    make_pair: Any, cuda: torch.device
) -> None:
    graph = join_graphs(make_pair(num_entities=60, num_triples=400))
    encoder = RREA(graph, dim=20, dropout=0.3).to(cuda)
    links = torch.stack([torch.arange(50), torch.arange(50) + 60], dim=1).to(cuda)
    steps = []
    for _ in range(3):  # equal weights, so that only random numbers differ
        member = copy.deepcopy(encoder)
        optimizer = torch.optim.SGD(member.parameters(), lr=0.0)
        steps.append(
            OptimisationStep(partial(MarginObjective(), member, links), optimizer)
        )
    memory = GraphMemory()
    step = GraphedStep(MemberSteps(steps, memory.member_streams(3)), [], memory)
    losses = torch.stack([step().clone() for _ in range(11)])
    assert len(losses.unique()) == losses.numel()
