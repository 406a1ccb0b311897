"""The relations of entities, and which relations of two graphs correspond."""

from typing import NamedTuple

import torch
from torch import Tensor

from emea.kernels.flat_groups import group_starts


class EntityRelations(NamedTuple):
    """The distinct directed relations of each entity of one graph.

    Args:
        starts: ``[num_entities + 1]`` start of each entity's relations.
        entities: ``[n]`` the entities, ascending.
        relations: ``[n]`` their relations.
        weights: ``[num_directed]`` weight of each relation.
    """

    starts: Tensor
    entities: Tensor
    relations: Tensor
    weights: Tensor

    @property
    def num_entities(self) -> int:
        """Number of entities of the graph."""
        return len(self.starts) - 1

    @property
    def num_directed(self) -> int:
        """Number of directed relations of the graph."""
        return len(self.weights)


class Counterparts(NamedTuple):
    """Relations of both graphs that correspond.

    Args:
        here: ``[n]`` relations of this side.
        there: ``[n]`` relations of the other side.
        inclusions: ``[n]`` how likely the relations correspond.
    """

    here: Tensor
    there: Tensor
    inclusions: Tensor

    def reversed(self) -> "Counterparts":
        """Return the same with the sides exchanged."""
        return Counterparts(self.there, self.here, self.inclusions)

    def by_other_side(self, num_there: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return starts, relations and inclusions of the other side's relations."""
        order = torch.argsort(self.there, stable=True)
        starts = group_starts(self.there, num_there)
        return starts, self.here[order], self.inclusions[order]


Pairs = tuple[Tensor, Tensor]
"""Entities of each pair, this side first."""
