"""The alignment of a run, by source entity, as export formats write it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from emea.data.arrays import NO_MATCH, IntArray
from emea.data.graph_pair import GraphPair

FloatArray = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Origin:
    """The provenance of an alignment, for formats that can contain it.

    Args:
        run_id: Id of the run, a uuid4 as hexadecimal digits.
        run_name: Name of the run.
        date: Date of the run, ISO 8601.
        tool_version: Version of this package and its commit.
        settings: Decoding and threshold, as text.
    """

    run_id: str
    run_name: str
    date: str
    tool_version: str
    settings: str


class Row(NamedTuple):
    """One source entity, by name.

    ``target`` is ``None`` and ``prob`` is 0 if the entity has no match. ``candidates`` are the most
    probable targets, best first, with or without a match.
    """

    source: str
    target: str | None
    prob: float
    is_given: bool
    candidates: list[tuple[str, float]]
    source_label: str | None = None
    target_label: str | None = None


@dataclass(frozen=True, eq=False)
class Alignment:
    """At most one target for each source entity of a pair of graphs.

    Args:
        pair: The graphs.
        origin: Provenance of the alignment.
        targets: ``[num_source]`` target of each source entity, or ``NO_MATCH``.
        probs: ``[num_source]`` its probability, 0 without a match.
        is_given: ``[num_source]`` whether the match is a training link.
        candidates: ``[num_source, k]`` the most probable targets, best first.
        candidate_probs: ``[num_source, k]`` their probabilities; 0 marks an empty slot.
    """

    pair: GraphPair
    origin: Origin
    targets: IntArray
    probs: FloatArray
    is_given: npt.NDArray[np.bool_]
    candidates: IntArray
    candidate_probs: FloatArray

    def rows(self, num_candidates: int | None = None) -> Iterator[Row]:
        """Yield the source entities in the order of their ids.

        Args:
            num_candidates: Maximum number of candidates per row; ``None`` means all.
        """
        name_of, target_name = self.pair.source.entity_name, self.pair.target.entity_name
        best = (self.candidates[:, :num_candidates], self.candidate_probs[:, :num_candidates])
        columns = (self.targets, self.probs, self.is_given, *best)
        values = zip(*(column.tolist() for column in columns), strict=True)
        for source, (target, prob, is_given, others, other_probs) in enumerate(values):
            scored = zip(others, other_probs, strict=True)
            yield Row(
                name_of(source),
                None if target == NO_MATCH else target_name(target),
                prob,
                is_given,
                [(target_name(other), share) for other, share in scored if share > 0],
                self.pair.source.entity_label(source),
                None if target == NO_MATCH else self.pair.target.entity_label(target),
            )
