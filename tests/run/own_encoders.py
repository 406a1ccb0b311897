"""Encoders as a user would write them, right and wrong ones."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import JointGraph
from emea.encoders.memory import EncoderMemory, RunSizes


class Plain(nn.Module):
    """Returns its parameter, the plainest encoder there is."""

    def __init__(self, graph: JointGraph, dim: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(graph.num_entities, dim)

    def forward(self) -> Any:
        return self.embedding.weight


class Estimated(Plain):
    """Estimates its memory."""

    @staticmethod
    def estimated_memory(
        encoder: Any, objective: Any, sizes: RunSizes
    ) -> EncoderMemory:
        num_bytes = 4.0 * sizes.num_entities * encoder["dim"]
        return EncoderMemory(encoder["dim"], 3 * num_bytes, num_bytes)


class Tied(Plain):
    """Has one parameter under two names."""

    def __init__(self, graph: JointGraph, dim: int = 8) -> None:
        super().__init__(graph, dim)
        self.rows = self.embedding.weight

    def forward(self) -> Tensor:
        return self.rows


class View(nn.Module):
    """Returns a part of a parameter, in an order of memory that is not a row after the other."""

    def __init__(self, graph: JointGraph, dim: int = 8) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(2 * dim, graph.num_entities))

    def forward(self) -> Tensor:
        return self.rows[::2].T


class Double(Plain):
    """Computes in double precision."""

    def __init__(self, graph: JointGraph, dim: int = 8) -> None:
        super().__init__(graph, dim)
        self.double()


class Half(Plain):
    """Computes in half precision."""

    def forward(self) -> Tensor:
        return self.embedding.weight.bfloat16()


RETURNED: dict[str, Callable[[Tensor], Any]] = {
    "TooFew": lambda rows: rows[:-1],
    "TooMany": lambda rows: torch.cat([rows, rows]),
    "Flat": lambda rows: rows.sum(1),
    "Cube": lambda rows: rows.unsqueeze(1),
    "Empty": lambda rows: rows[:, :0],
    "Pair": lambda rows: (rows, rows),
    "Array": lambda rows: rows.detach().numpy(),
    "Nothing": lambda rows: None,
    "Whole": lambda rows: rows.long(),
    "Sparse": lambda rows: rows.to_sparse(),
    "Detached": lambda rows: rows.detach(),
    "NaN": lambda rows: rows * float("nan"),
    "Infinite": lambda rows: rows / 0,
}
"""What wrong encoders return instead of their parameter, by their name."""

for name, change in RETURNED.items():
    forward = {"forward": lambda self, change=change: change(self.embedding.weight)}
    globals()[name] = type(name, (Plain,), forward)


class Asking(Plain):
    """Needs an argument."""

    def forward(self, entities: Tensor) -> Any:
        return self.embedding(entities)


class Bare:
    """Not a module at all."""

    def __init__(self, graph: JointGraph) -> None:
        self.rows = torch.randn(graph.num_entities, 4)

    def __call__(self) -> Tensor:
        return self.rows
