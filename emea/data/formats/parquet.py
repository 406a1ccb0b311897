"""Reads triples from Parquet with pyarrow, an optional dependency."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from emea.data.formats.input_file import BadLines
from emea.data.formats.limits import (
    MIB,
    RATIO_FROM,
    check_regular_file,
    current_limits,
    limit_error,
)
from emea.data.formats.rows import Columns, Row, check_same_ids
from emea.errors import DataError


def parquet_rows(
    path: Path, names: Sequence[Sequence[str]], bad: BadLines, attributes: Sequence[str] = ()
) -> Iterator[Row]:
    """Yield the wanted cells of each row, as text.

    Columns are found by name, in any order. If the names are unknown, the file must have exactly
    the wanted columns in the wanted order.

    Args:
        path: The file.
        names: The names that each wanted column may have.
        bad: Handles rows that cannot be used.
        attributes: Further columns to read. Their cells may be empty.

    Raises:
        DataError: pyarrow is missing, or the file cannot be read.
    """
    pyarrow, parquet = _pyarrow()
    check_regular_file(path)
    try:
        with parquet.ParquetFile(path) as file:
            _check_size(path, file.metadata)
            wanted = _wanted(path, file.schema_arrow.names, names)
            marked = [name for name in attributes if name in file.schema_arrow.names]
            read = [*wanted, *marked]
            _check_columns(path, file.schema_arrow, read, pyarrow)
            _check_same_ids(path, file.schema_arrow, wanted, pyarrow)
            columns = Columns.without_header(names)._replace(
                width=len(read), attributes=[(name, read.index(name)) for name in marked]
            )
            number = 0
            for batch in file.iter_batches(columns=read):
                values = zip(*(batch.column(name).to_pylist() for name in read), strict=True)
                for number, cells in enumerate(values, number + 1):  # noqa: B020
                    row = Row(number, list(map(_text, cells)))
                    if (problem := columns.problem(row.cells)) is not None:
                        bad.add(number, problem)
                    else:
                        yield columns.wanted(row)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    # Python errors: text that is not UTF-8, and dates outside the range of datetime
    except (pyarrow.ArrowException, ValueError, OverflowError) as error:
        raise DataError(f"{path.name} cannot be read as Parquet: {error}") from error


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(
            "Parquet files need pyarrow, which is not installed. In a clone of emea, run "
            "pip install '.[parquet]'."
        ) from error
    return pyarrow, pyarrow.parquet


def _check_size(path: Path, metadata: Any) -> None:
    """Refuse a file whose decompressed size exceeds the limits, before it is read.

    A column of equal values takes almost no space, so each row counts as one byte at least.
    """
    limits, num_packed = current_limits(), max(1, path.stat().st_size)
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    num_bytes = max(metadata.num_rows, sum(group.total_byte_size for group in groups))
    if metadata.num_columns > limits.columns:
        raise limit_error(path, "the number of columns", "columns", limits)
    if num_bytes > limits.size_mib * MIB:
        raise limit_error(path, "the decompressed size in MiB", "size_mib", limits)
    if num_bytes > max(RATIO_FROM, limits.ratio * num_packed):
        raise limit_error(path, "decompressed over compressed size", "ratio", limits)


def _wanted(path: Path, given: Sequence[str], names: Sequence[Sequence[str]]) -> list[str]:
    plain = Columns.without_header(names)
    columns = plain.from_header(given) or plain
    if len(given) != columns.width:
        wanted = ", ".join(choices[0] for choices in names)
        raise DataError(
            f"{path.name} has the columns {', '.join(given)}, but {wanted} are expected. Rename "
            "the columns."
        )
    return [given[place] for place in columns.places]


def _check_columns(path: Path, schema: Any, wanted: Sequence[str], pyarrow: Any) -> None:
    """Refuse wanted columns that are ambiguous or whose cells are not single values."""
    for name in wanted:
        if schema.names.count(name) > 1:
            raise DataError(f"{path.name} has more than one column {name}. Rename the others.")
        kind = schema.field(name).type
        if pyarrow.types.is_nested(kind):
            raise DataError(
                f"{path.name}: column {name} contains {kind}, but each row must contain one name"
            )


def _check_same_ids(path: Path, schema: Any, wanted: Sequence[str], pyarrow: Any) -> None:
    """Refuse integers next to floats in heads and tails."""
    is_integer, is_floating = pyarrow.types.is_integer, pyarrow.types.is_floating
    kinds = {name: schema.field(name).type for name in (wanted[0], wanted[-1])}
    check_same_ids(
        path.name,
        [name for name, kind in kinds.items() if is_integer(kind)],
        [name for name, kind in kinds.items() if is_floating(kind)],
    )


def _text(value: object) -> str:
    if isinstance(value, bytes):  # some programs do not mark their columns as text
        return value.decode(errors="surrogateescape")
    # programs other than pandas write missing numbers as NaN, which differs from itself
    return "" if value is None or value != value else str(value)
