"""Encoders as a user would write them, right and wrong ones."""

from typing import Any

import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import JointGraph


class Plain(nn.Module):
    """Returns its parameter, the plainest encoder there is."""

    def __init__(self, graph: JointGraph, dim: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(graph.num_entities, dim)

    def forward(self) -> Any:
        return self.embedding.weight


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


class TooFew(Plain):
    def forward(self) -> Any:
        return self.embedding.weight[:-1]


class TooMany(Plain):
    def forward(self) -> Any:
        return torch.cat([self.embedding.weight, self.embedding.weight])


class Flat(Plain):
    def forward(self) -> Any:
        return self.embedding.weight.sum(1)


class Cube(Plain):
    def forward(self) -> Any:
        return self.embedding.weight.unsqueeze(1)


class Empty(Plain):
    def forward(self) -> Any:
        return self.embedding.weight[:, :0]


class Pair(Plain):
    def forward(self) -> Any:
        return self.embedding.weight, self.embedding.weight


class Array(Plain):
    def forward(self) -> Any:
        return self.embedding.weight.detach().numpy()


class Nothing(Plain):
    def forward(self) -> Any:
        return None


class Whole(Plain):
    def forward(self) -> Any:
        return self.embedding.weight.long()


class Sparse(Plain):
    def forward(self) -> Any:
        return self.embedding.weight.to_sparse()


class Detached(Plain):
    def forward(self) -> Any:
        return self.embedding.weight.detach()


class NaN(Plain):
    def forward(self) -> Any:
        return self.embedding.weight * float("nan")


class Infinite(Plain):
    def forward(self) -> Any:
        return self.embedding.weight / 0


class Asking(Plain):
    def forward(self, entities: Tensor) -> Any:
        return self.embedding(entities)


class Bare:
    """Not a module at all."""

    def __init__(self, graph: JointGraph) -> None:
        self.rows = torch.randn(graph.num_entities, 4)

    def __call__(self) -> Tensor:
        return self.rows
