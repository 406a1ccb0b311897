"""Fixtures of the encoder tests."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair

MakePair = Callable[..., GraphPair]


@pytest.fixture
def make_pair() -> MakePair:
    """Draws a pair of random graphs with loops, multi-edges and repeated triples.

    The last two entities of each side have no triple. Entity i is linked to entity i.
    """

    def make(
        seed: int = 0, num_entities: int = 9, num_relations: int = 3, num_triples: int = 20
    ) -> GraphPair:
        rng = np.random.default_rng(seed)
        graphs = []
        for extra in (0, 1):
            ends = rng.integers(0, num_entities + extra - 2, (num_triples, 2))
            relations = rng.integers(0, num_relations, num_triples)
            triples = np.stack([ends[:, 0], relations, ends[:, 1]], axis=1)
            head, relation, tail = triples[0]
            special = [[head, relation, tail], [tail, relation, head], [head, relation, head]]
            triples = np.concatenate([triples, special])
            graphs.append(KnowledgeGraph(triples, num_entities + extra, num_relations))
        links = np.repeat(np.arange(num_entities)[:, None], 2, axis=1)
        return GraphPair("random", *graphs, links=links)

    return make


class LargestOutput(TorchDispatchMode):
    """Records how many elements the outputs of all operations hold."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for part in result if isinstance(result, tuple | list) else [result]:
            if isinstance(part, Tensor):
                held = part.values() if part.layout == torch.sparse_csr else part
                self.largest = max(self.largest, held.numel())
        return result


@pytest.fixture
def largest_output() -> type[LargestOutput]:
    """A context in which the size of every operation's output is watched."""
    return LargestOutput


@pytest.fixture
def assert_same_on_cuda(cuda: torch.device) -> Callable[[nn.Module, nn.Module], None]:
    """Compares an encoder in single precision on CUDA with one in double on the CPU."""

    def compare(reference: nn.Module, encoder: nn.Module) -> None:
        encoder.load_state_dict(reference.state_dict())
        encoder.to(cuda)
        expected, result = reference(), encoder()
        torch.testing.assert_close(result.double().cpu(), expected, rtol=1e-4, atol=1e-4)
        weights = torch.randn(expected.shape)
        (expected * weights).sum().backward()
        (result * weights.to(cuda)).sum().backward()
        for left, right in zip(encoder.parameters(), reference.parameters(), strict=True):
            assert left.grad is not None
            assert right.grad is not None
            slack = 1e-4 * float(right.grad.abs().max())
            torch.testing.assert_close(left.grad.double().cpu(), right.grad, rtol=0, atol=slack)

    return compare
