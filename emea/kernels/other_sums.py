"""Sums of positive terms over the other pairs of an entity, which lose no digits."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Tensor

from emea.kernels import choice
from emea.kernels.flat_groups import group_starts
from emea.kernels.numba_calls import arrays, score_loops
from emea.runtime.threads import in_ranges

OPERATIONS_PER_PAIR = 64
"""Approximate operations per pair of all sums of one use, about six of each side."""


class PlaceGroups(NamedTuple):
    """The places in a flattened table of the pairs of each entity of one side.

    Args:
        starts: ``[num_entities + 1]`` start of each entity's places.
        places: ``[num_pairs]`` the places, by entity.
    """

    starts: Tensor
    places: Tensor


@dataclass(frozen=True, eq=False)
class Slots:
    """The pairs of a table with one row per source entity.

    Args:
        targets: ``[num_source, width]`` target ids; those of empty slots are arbitrary.
        filled: ``[num_source, width]`` whether a slot contains a pair.
        num_target: Number of entities of the target graph.
    """

    targets: Tensor
    filled: Tensor
    num_target: int

    @cached_property
    def by_source(self) -> PlaceGroups:
        """The places of each source entity's pairs."""
        num_source, width = self.targets.shape
        places = self.filled.flatten().nonzero().squeeze(1)
        return PlaceGroups(group_starts(places // width, num_source), places)

    @cached_property
    def by_target(self) -> PlaceGroups:
        """The places of each target entity's pairs, in the order of the source entities."""
        places = self.by_source.places
        targets = self.targets.flatten()[places]
        order = torch.argsort(targets, stable=True)
        return PlaceGroups(group_starts(targets, self.num_target), places[order])


OtherSums = Callable[[Tensor], Tensor]
"""Takes the terms of the pairs, and returns 1 + the sum of the other terms of a pair's entity."""


def torch_other_sums(sums: Callable[[Tensor], Tensor], terms: Tensor) -> Tensor:
    """Return 1 + the sum of the other terms of each pair's entity, ``[num_source, width]``.

    Args:
        sums: Takes terms, and returns the sum of the terms of each pair's entity.
        terms: ``[num_source, width]``, not negative, about 0 in empty slots.
    """
    # Subtracting a term from its sum would cancel if the term is most of the sum. At most one
    # term of an entity is more than half of it; the others of such a term are summed without it.
    total = 1 + sums(terms)
    is_most = terms > total / 2
    without_most = 1 + sums(terms.masked_fill(is_most, 0))
    return torch.where(is_most, without_most, total - terms)


def sums_of_source(terms: Tensor) -> Tensor:
    """Return the sum of each source entity's terms, ``[num_source, 1]``."""
    return terms.sum(1, keepdim=True)


def sums_of_target(slots: Slots, terms: Tensor) -> Tensor:
    """Return the sum of the terms of each pair's target entity, ``[num_source, width]``."""
    targets = slots.targets.flatten()
    filled_terms = torch.where(slots.filled, terms, 0.0).flatten()
    sums = filled_terms.new_zeros(slots.num_target)
    sums.index_add_(0, targets, filled_terms)
    return sums.index_select(0, targets).view_as(terms)


def other_sums(slots: Slots) -> tuple[OtherSums, OtherSums]:
    """Return the sums over the pairs of each source entity, and of each target entity."""
    num_operations = OPERATIONS_PER_PAIR * slots.targets.numel()
    if choice.uses_numba(slots.targets, num_operations):
        return _numba_sums(slots)
    of_source = partial(torch_other_sums, sums_of_source)
    of_target = partial(torch_other_sums, partial(sums_of_target, slots))
    return of_source, of_target


def _numba_sums(slots: Slots) -> tuple[OtherSums, OtherSums]:
    """Return the same sums by compiled loops over groups of places in the flattened table."""
    of_source = partial(_compiled_sums, slots.by_source)
    of_target = partial(_compiled_sums, slots.by_target)
    return of_source, of_target


def _compiled_sums(groups: PlaceGroups, terms: Tensor) -> Tensor:
    """Return the sums of the pairs, and 1 in other places.

    Args:
        groups: The places of each entity's pairs in the flattened terms.
        terms: ``[num_source, width]``, not negative.
    """
    sums = torch.ones_like(terms)
    flat_terms, flat_sums = (values.reshape(-1) for values in arrays(terms, sums))
    in_ranges(
        score_loops().other_sums,
        len(groups.starts) - 1,
        arrays(*groups),
        flat_terms,
        flat_sums,
    )
    return sums
