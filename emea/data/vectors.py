"""Vectors of entities from any model, and the files that contain them.

A file has one row for each entity. A Parquet file has the column ``id``, and one column of lists or
several columns of numbers. ``.npy`` and ``.safetensors`` contain a matrix; the lines of a file with
the same name and the ending ``.txt`` are the names of the entities.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from emea.data.arrays import IntArray
from emea.errors import DataError
from emea.runtime.regular_file import open_regular

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


def read_vectors(path: Path, names: Sequence[str], skips_unknown: bool = False) -> EntityVectors:
    """Read the vectors of a graph's entities.

    Args:
        path: The file.
        names: The names of the entities.
        skips_unknown: Leave out vectors of unknown entities instead of raising an error.

    Raises:
        DataError: The file cannot be used. The message is one sentence.
    """
    if path.suffix not in READERS:
        raise DataError(f"{path.name} must end in .npy, .safetensors or .parquet.")
    try:
        with open_regular(path):  # the libraries open it by its name
            ids, values = READERS[path.suffix](path)
    except DataError:
        raise
    except Exception as error:  # each library has its own exceptions
        raise DataError(f"{path} cannot be read: {error}") from error
    if values.ndim != 2 or not values.shape[1] or values.dtype.kind != "f":
        raise DataError(f"{path.name} must contain one matrix of floating-point numbers.")
    if len(ids) != len(values):
        raise DataError(f"{path.name} has {len(values):,} vectors for {len(ids):,} names.")
    values = np.ascontiguousarray(values, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(values).all(1) | ~values.any(1))
    if len(bad):
        raise DataError(
            f"{path.name}: {len(bad):,} vectors contain NaN or infinity or are zero, "
            f"for example that of {ids[bad[0]]}."
        )
    numbers = {name: number for number, name in enumerate(names)}
    unknown = [name for name in ids if name not in numbers]
    if len(unknown) == len(ids) or (unknown and not skips_unknown):
        example = f", for example {unknown[0]}" if unknown else ""
        raise DataError(
            f"{path.name}: {len(unknown):,} of {len(ids):,} names are not entities of the graph"
            f"{example}. Write names as in the graph, or set data.on_error=skip."
        )
    rows = np.array([row for row, name in enumerate(ids) if name in numbers], dtype=np.int64)
    entities = np.array([numbers[ids[row]] for row in rows.tolist()], dtype=np.int64)
    distinct, first = np.unique(entities, return_index=True)
    if len(distinct) < len(entities):
        raise DataError(f"{path.name}: {len(entities) - len(distinct):,} names occur twice.")
    return EntityVectors(path.stem, distinct, values[rows[first]])


def check_sizes(source: Sequence[EntityVectors], target: Sequence[EntityVectors]) -> None:
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


def _names_beside(path: Path) -> list[str]:
    listed = path.with_suffix(".txt")
    try:
        with open_regular(listed) as file:
            return (
                file.read().decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n").split("\n")
            )
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path.name} needs the names of its entities, one in each line of {listed}: {error}"
        ) from error


def _from_npy(path: Path) -> tuple[list[str], Matrix]:
    # the memory map fails if the file is smaller than its header says
    return _names_beside(path), np.load(path, mmap_mode="r", allow_pickle=False)


def _from_safetensors(path: Path) -> tuple[list[str], Matrix]:
    from safetensors.numpy import load_file

    tensors = load_file(path)
    if len(tensors) != 1:
        raise DataError(f"{path.name} must contain one matrix, got {len(tensors)} tensors.")
    return _names_beside(path), next(iter(tensors.values()))


def _from_parquet(path: Path) -> tuple[list[str], Matrix]:
    import pandas as pd

    table = pd.read_parquet(path)
    if "id" not in table.columns or len(table.columns) < 2:
        raise DataError(f"{path.name} needs a column id and columns with the vectors.")
    rest = table.drop(columns="id")
    values = np.stack(list(rest.iloc[:, 0])) if rest.shape[1] == 1 else rest.to_numpy()
    return table["id"].astype(str).tolist(), values.astype(np.float32)


READERS: Mapping[str, Callable[[Path], tuple[list[str], Matrix]]] = {
    ".npy": _from_npy,
    ".safetensors": _from_safetensors,
    ".parquet": _from_parquet,
}
