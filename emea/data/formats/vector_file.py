"""Reads vectors of entities from files, within the limits of all input files.

A file has one row for each entity. A Parquet file has the column ``id``, and one column of lists or
several columns of numbers. ``.npy`` and ``.safetensors`` contain a matrix; the lines of a file with
the same name and the ending ``.txt`` are the names of the entities.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from emea.data.formats.limits import (
    MIB,
    Guard,
    current_limits,
    explained_failures,
    limit_error,
)
from emea.data.formats.parquet_file import (
    check_expanded,
    decoded,
    load_pyarrow,
    opened_parquet,
    text_of,
)
from emea.data.formats.tab_file import read_bytes
from emea.data.vectors import EntityVectors, Matrix
from emea.errors import DataError
from emea.runtime.regular_file import open_regular

ROWS_PER_BATCH = 4096
"""Rows of a Parquet file that are decoded at once."""

BYTES_PER_NUMBER = 4

ID_COLUMN = "id"

LEAST_LENGTH, MOST_LENGTH = 1e-6, 1e6
"""Largest numbers of vectors that are not rescaled."""


def read_vectors(
    path: Path, names: Sequence[str], skips_unknown: bool = False
) -> EntityVectors:
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
    if path.suffix != ".parquet" and not path.with_suffix(".txt").exists():
        raise DataError(
            f"{path.name} needs the names of its entities, one in each line of "
            f"{path.with_suffix('.txt')}, which does not exist."
        )
    with explained_failures(path), _explained(path):
        ids, values = READERS[path.suffix](path)
        _check_values(path, ids, values)
        return _of_entities(path, ids, _rescaled(values), names, skips_unknown)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn the errors of the libraries, each of which has its own, into one that names the file."""
    try:
        yield
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _check_values(path: Path, ids: Sequence[str], values: Matrix) -> None:
    """Raise an error for vectors that no measure of similarity can compare."""
    if len(ids) != len(values):
        raise DataError(
            f"{path.name} has {len(values):,} vectors for {len(ids):,} names."
        )
    is_bad = ~np.isfinite(values).all(1) | ~values.any(1)
    bad = np.flatnonzero(is_bad)
    if len(bad):
        raise DataError(
            f"{path.name}: {len(bad):,} vectors contain NaN or infinity or are zero, "
            f"for example that of {ids[bad[0]]}."
        )


def _rescaled(values: Matrix) -> Matrix:
    """Return vectors whose lengths can be computed: squares of the others are 0 or infinite.

    Vectors are compared by their directions, so that their lengths have no meaning.
    """
    largest = np.abs(values).max(1, keepdims=True)
    is_extreme = ((largest < LEAST_LENGTH) | (largest > MOST_LENGTH))[:, 0]
    if is_extreme.any():
        values = values.copy()
        values[is_extreme] /= largest[is_extreme]
    return values


def _of_entities(
    path: Path,
    ids: Sequence[str],
    values: Matrix,
    names: Sequence[str],
    skips_unknown: bool,
) -> EntityVectors:
    """Return the vectors in the order of the entities."""
    numbers = {name: number for number, name in enumerate(names)}
    unknown = [name for name in ids if name not in numbers]
    if len(unknown) == len(ids) or (unknown and not skips_unknown):
        example = f", for example {unknown[0]}" if unknown else ""
        raise DataError(
            f"{path.name}: {len(unknown):,} of {len(ids):,} names are not entities of the graph"
            f"{example}. Write names as in the graph, or set data.on_error=skip."
        )
    rows = np.array(
        [row for row, name in enumerate(ids) if name in numbers], dtype=np.int64
    )
    entities = np.array([numbers[ids[row]] for row in rows.tolist()], dtype=np.int64)
    distinct, first = np.unique(entities, return_index=True)
    if len(distinct) < len(entities):
        raise DataError(
            f"{path.name}: {len(entities) - len(distinct):,} names occur twice."
        )
    return EntityVectors(path.stem, distinct, values[rows[first]])


def _as_matrix(path: Path, values: np.ndarray) -> Matrix:
    if values.ndim != 2 or not values.shape[1] or values.dtype.kind != "f":
        raise _not_a_matrix(path)
    with np.errstate(over="ignore"):  # infinity is reported
        return np.ascontiguousarray(values, dtype=np.float32)


def _not_a_matrix(path: Path) -> DataError:
    return DataError(f"{path.name} must contain one matrix of floating-point numbers.")


@contextmanager
def _within_size(path: Path) -> Iterator[BufferedReader]:
    """Open a file whose size is within the limit."""
    with open_regular(path) as file:
        limits = current_limits()
        if os.fstat(file.fileno()).st_size > limits.size_mib * MIB:
            raise limit_error(path, "the size in MiB", "size_mib", limits)
        yield file


def _listed_names(path: Path, num_wanted: int) -> list[str]:
    """Return the names in the text file next to a matrix.

    The lines are counted before they become strings, which take much more memory.
    """
    listed = path.with_suffix(".txt")
    try:
        content = read_bytes(listed).replace(b"\r\n", b"\n").removesuffix(b"\n")
        num_lines = content.count(b"\n") + 1
        if num_lines != num_wanted:
            raise DataError(
                f"{path.name} has {num_wanted:,} vectors for {num_lines:,} names."
            )
        return content.decode().split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{listed.name}, line {line} is not UTF-8. Save the file as UTF-8."
        ) from (error)


def _from_npy(path: Path) -> tuple[list[str], Matrix]:
    with _within_size(path) as file:
        try:
            version = np.lib.format.read_magic(file)
            read_header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, is_fortran, dtype = read_header(file)
        except (KeyError, ValueError) as error:
            raise DataError(
                f"{path} cannot be read: it is not a .npy file of NumPy ({error})."
            ) from error
        if dtype.kind != "f" or len(shape) != 2:
            raise _not_a_matrix(path)
        # a header may claim any shape
        num_bytes = os.fstat(file.fileno()).st_size - file.tell()
        if min(shape) < 0 or prod(shape) * dtype.itemsize > num_bytes:
            raise DataError(
                f"{path} cannot be read: its header says {shape[0]:,} x {shape[1]:,} numbers, which"
                " are more than the file has. Write it again."
            )
        names = _listed_names(path, shape[0])
        numbers = np.memmap(
            file, dtype, "r", file.tell(), shape, order="F" if is_fortran else "C"
        )
        return names, _as_matrix(path, numbers)


def _from_safetensors(path: Path) -> tuple[list[str], Matrix]:
    from safetensors import safe_open

    # the library opens the file by its name
    with _within_size(path), safe_open(path, "np") as tensors:
        keys = list(tensors.keys())
        if len(keys) != 1:
            raise DataError(
                f"{path.name} must contain one matrix, got {len(keys)} tensors."
            )
        shape = tensors.get_slice(keys[0]).get_shape()
        if len(shape) != 2:
            raise _not_a_matrix(path)
        names = _listed_names(path, shape[0])
        return names, _as_matrix(path, tensors.get_tensor(keys[0]))


def _from_parquet(path: Path) -> tuple[list[str], Matrix]:
    guard = Guard(path, path.stat().st_size)
    with opened_parquet(path) as file:
        schema = file.schema_arrow
        if schema.names.count(ID_COLUMN) != 1 or len(schema.names) < 2:
            raise DataError(
                f"{path.name} needs a column id and columns with the vectors."
            )
        _check_types(path, schema)
        # a column of equal numbers takes almost no space in the file
        check_expanded(path, BYTES_PER_NUMBER * _num_values(file.metadata))
        ids: list[str] = []
        blocks: list[Matrix] = []
        for batch in file.iter_batches(ROWS_PER_BATCH):
            ids += map(text_of, decoded(batch.column(ID_COLUMN), guard))
            blocks.append(_block(path, batch, blocks))
            check_expanded(path, sum(block.nbytes for block in blocks))
        if not blocks:
            raise _not_a_matrix(path)
        return ids, _as_matrix(path, np.concatenate(blocks))


def _num_values(metadata: Any) -> int:
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    return sum(
        group.column(place).num_values
        for group in groups
        for place in range(group.num_columns)
    )


def _check_types(path: Path, schema: Any) -> None:
    """Refuse columns that are neither numbers nor, if there is only one, lists of numbers."""
    types = load_pyarrow().types
    others = [one for one in schema if one.name != ID_COLUMN]
    for one in others:
        kind = one.type
        is_list = (
            types.is_list(kind)
            or types.is_large_list(kind)
            or types.is_fixed_size_list(kind)
        )
        if is_list and len(others) == 1:
            kind = kind.value_type
        if not (
            types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)
        ):
            shown = one.type.value_type if types.is_dictionary(one.type) else one.type
            raise DataError(
                f"{path.name}: column {one.name} contains {shown}, but vectors are one column of"
                " lists of numbers, or several columns of numbers."
            )


def _block(path: Path, batch: Any, before: Sequence[Matrix]) -> Matrix:
    """Return the vectors of some rows; missing numbers become NaN, which is reported."""
    pyarrow = load_pyarrow()
    columns = [batch.column(name) for name in batch.schema.names if name != ID_COLUMN]
    if len(columns) > 1 or not hasattr(columns[0], "flatten"):
        return np.stack([_numbers(column) for column in columns], axis=1)
    lengths = pyarrow.compute.list_value_length(columns[0]).to_pylist()
    wanted = before[0].shape[1] if before else lengths[0]
    if set(lengths) != {wanted} or not wanted:
        raise DataError(
            f"{path.name}: the lists of a column with vectors must have the same length, but some "
            f"have {wanted or 0} numbers and others do not."
        )
    return _numbers(columns[0].flatten()).reshape(-1, wanted)


def _numbers(column: Any) -> np.ndarray:
    pyarrow = load_pyarrow()
    numbers = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):  # infinity is reported
        found: np.ndarray = numbers.astype(np.float32)
        return found


READERS: Mapping[str, Callable[[Path], tuple[list[str], Matrix]]] = {
    ".npy": _from_npy,
    ".safetensors": _from_safetensors,
    ".parquet": _from_parquet,
}
"""Functions that return names and vectors, by the ending of the file."""
