"""The answer of a run by entity, as it is written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair

FloatArray = npt.NDArray[np.floating]

NOBODY = -1
"""Target of a source entity that stays unmatched."""


@dataclass(frozen=True)
class Origin:
    """Where an alignment comes from; told by formats that have a place for it.

    Args:
        run_id: a uuid4 hex, the run's.
        run_name: what a person calls the run.
        date: of the run, ISO 8601.
        tool_version: of this package and its code.
        settings: how the answer was made of what the run believes, in words.
    """

    run_id: str
    run_name: str
    date: str
    tool_version: str
    settings: str


class Row(NamedTuple):
    """One source entity, by name.

    ``target`` is ``None`` where it stays unmatched, and its probability 0. ``candidates`` are
    the most probable targets, best first, whatever the answer is.
    """

    source: str
    target: str | None
    prob: float
    is_given: bool
    candidates: list[tuple[str, float]]


@dataclass(frozen=True, eq=False)
class Alignment:
    """The answer to every source entity of a pair.

    Args:
        pair: whose entities they are.
        origin: where it comes from.
        targets: ``[num_source]`` the target each source entity has, ``NOBODY`` where none.
        probs: ``[num_source]`` its probability, 0 where there is none.
        is_given: ``[num_source]`` whether the answer was given as a label.
        candidates: ``[num_source, k]`` the most probable targets, best first.
        candidate_probs: ``[num_source, k]`` their probabilities; 0: no candidate at all.
    """

    pair: GraphPair
    origin: Origin
    targets: IntArray
    probs: FloatArray
    is_given: npt.NDArray[np.bool_]
    candidates: IntArray
    candidate_probs: FloatArray

    def rows(self, num_candidates: int | None = None) -> Iterator[Row]:
        """The source entities, in the order of their ids.

        Args:
            num_candidates: how many of the candidates to name; ``None``: all.
        """
        name_of, target_name = self.pair.source.entity_name, self.pair.target.entity_name
        best = (self.candidates[:, :num_candidates], self.candidate_probs[:, :num_candidates])
        columns = (self.targets, self.probs, self.is_given, *best)
        values = zip(*(column.tolist() for column in columns), strict=True)
        for source, (target, prob, is_given, others, other_probs) in enumerate(values):
            scored = zip(others, other_probs, strict=True)
            yield Row(
                name_of(source),
                None if target == NOBODY else target_name(target),
                prob,
                is_given,
                [(target_name(other), share) for other, share in scored if share > 0],
            )
