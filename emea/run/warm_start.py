"""Starts a run from the state of an earlier run on an earlier version of its graphs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import NO_MATCH, IntArray
from emea.em.local import LocalUpdate
from emea.matching.beliefs import Matching
from emea.run.building import BuiltRun


@dataclass(frozen=True, eq=False)
class RowMap:
    """Says where the rows of a parameter were in the earlier run.

    Args:
        old_rows: ``[num_rows]`` row in the earlier run, or ``NO_MATCH`` for a new row.
        num_old: Number of rows in the earlier run.
        edges: ``[n, 2]`` new row and a row of its neighbourhood that existed. A new row starts from
            the mean of these rows. With ``None``, or without edges, it keeps its new value.
    """

    old_rows: IntArray
    num_old: int
    edges: IntArray | None = None

    def fits(self, old: Tensor, new: Tensor) -> bool:
        """Return whether two versions of a parameter have these rows."""
        return len(old) == self.num_old and new.shape == (
            len(self.old_rows),
            *old.shape[1:],
        )

    def carried(self, old: Tensor, new: Tensor) -> Tensor:
        """Return the new parameter, with the earlier values of the rows that existed."""
        # rows that existed move to their new places; new rows keep their random values for now
        known = torch.from_numpy(self.old_rows != NO_MATCH)
        rows = new.detach().cpu().clone()
        rows[known] = old[torch.from_numpy(self.old_rows)[known]].to(rows)
        if self.edges is not None and len(self.edges) and rows.is_floating_point():
            # a new row with known neighbours starts from their mean, [num_rows, ...]: sums of the
            # neighbours' rows, divided by their numbers, which are broadcast over other dimensions
            at, neighbours = torch.from_numpy(self.edges.T.copy())
            sums = torch.zeros_like(rows).index_add_(0, at, rows[neighbours])
            numbers = torch.bincount(at, minlength=len(rows))
            begun = numbers.nonzero().squeeze(1)
            shape = (-1, *(1,) * (rows.dim() - 1))
            rows[begun] = sums[begun] / numbers[begun].to(rows).view(shape)
        return rows


def joint_rows(maps: Sequence[RowMap], directions: int = 1) -> RowMap:
    """Return the map of the rows of both graphs, source first, once per direction."""
    # in the joint graph, target rows follow those of the source graph, in both runs
    source, target = maps
    shifted = np.where(
        target.old_rows == NO_MATCH, NO_MATCH, target.old_rows + source.num_old
    )
    rows = np.concatenate([source.old_rows, shifted])
    num_old = source.num_old + target.num_old
    parts = [
        np.where(rows == NO_MATCH, NO_MATCH, rows + turn * num_old)
        for turn in range(directions)
    ]
    return RowMap(np.concatenate(parts), directions * num_old)


def carried_state(
    old: Mapping[str, Tensor], new: Mapping[str, Tensor], maps: list[RowMap]
) -> dict[str, Tensor]:
    """Return the parameters and buffers that a new encoder can take from an earlier one.

    A parameter with one row per entity or relation takes the rows that existed. A parameter whose
    shape does not depend on the graphs is taken as a whole. Others keep their new values.

    Args:
        old: State of the earlier encoder.
        new: State of the new encoder.
        maps: Rows of entities and of relations.
    """
    found = {}
    for name, value in new.items():
        # a parameter is recognised by its name, and by its number of rows if it has one per
        # entity or relation
        before = old.get(name)
        if before is None or before.dim() != value.dim():
            continue
        fitting = [one for one in maps if before.dim() and one.fits(before, value)]
        if fitting:
            found[name] = fitting[0].carried(before, value)
        elif before.shape == value.shape:
            found[name] = before
    return found


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Holds the state of an earlier run in the ids of the new graphs.

    Args:
        known: Matches of the earlier run and the labels, with their beliefs.
        labels: ``[n, 2]`` matches that the encoder starts from, in addition to the labels.
        weights: ``[n]`` their weights in training; ``None`` means equal weights.
        encoder: State of the earlier encoder, in its own ids; empty if it was not kept.
        maps: Rows of entities and relations in the earlier encoder.
        local: Entities to which the run is restricted; ``None`` means all.
    """

    known: Matching
    labels: IntArray
    weights: Tensor | None
    encoder: Mapping[str, Tensor]
    maps: list[RowMap]
    local: LocalUpdate | None = None

    def apply(self, parts: BuiltRun) -> None:
        """Give the state to the objects of a run that has not started yet."""
        # the encoder first; labels and beliefs follow only if the run reasons
        state = parts.module.state_dict()
        parts.module.load_state_dict(
            {**state, **carried_state(self.encoder, state, self.maps)}
        )
        if not parts.em.step.reasons:
            return
        # labels are stored in ids of the joint graph, where target ids follow the source ids
        offset = np.array([0, parts.data.num_source])
        parts.data.relabel(
            [
                self._with_matches(links.numpy() - offset, weights)
                for links, weights in parts.data.member_labels
            ]
        )
        parts.em.step.start_from(self.known)

    def _with_matches(
        self, given: IntArray, before: Tensor | None
    ) -> tuple[IntArray, Tensor | None]:
        """Return the links of an encoder with the matches of the earlier run, and their weights."""
        weights = self.weights
        if weights is not None:
            ones = torch.ones(len(given)) if before is None else before
            weights = torch.cat([ones, weights.to(ones)])
        return np.concatenate([given, self.labels]), weights
