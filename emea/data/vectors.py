"""Vectors of entities from any model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from emea.data.arrays import IntArray
from emea.errors import DataError

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EntityVectors:
    """Vectors of some entities of one graph.

    Args:
        name: The kind of vectors, which is the name of the file without its ending.
        entities: ``[num_vectors]`` the entity of each vector.
        values: ``[num_vectors, dim]`` the vectors.
    """

    name: str
    entities: IntArray
    values: Matrix

    def relabelled(self, new_ids: IntArray) -> "EntityVectors":
        """Return the vectors of the entities that keep an id, which is not negative."""
        entities = new_ids[self.entities]
        order = np.argsort(entities)[(entities < 0).sum() :]
        return replace(self, entities=entities[order], values=self.values[order])


def check_sizes(
    source: Sequence[EntityVectors], target: Sequence[EntityVectors]
) -> None:
    """Raise an error unless both graphs have the same kinds of vectors, of the same lengths."""
    if len(source) != len(target):
        raise DataError(
            f"There are {len(source)} files of source vectors and {len(target)} of target vectors. "
            "Each kind of vectors needs one file for each graph."
        )
    for one, other in zip(source, target, strict=True):
        sizes = one.values.shape[1], other.values.shape[1]
        if sizes[0] != sizes[1]:
            raise DataError(
                f"Vectors of {one.name} have {sizes[0]} numbers and those of {other.name} "
                f"{sizes[1]}. Use one model for both graphs."
            )
