"""Opens Parquet files. Their size is checked before they are read; errors name the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emea.data.formats.limits import MIB, RATIO_FROM, Guard, current_limits, limit_error
from emea.errors import DataError
from emea.runtime.regular_file import open_regular

BYTES_PER_ROW = 16
"""What a row of a Parquet file takes in memory at least."""


@contextmanager
def opened_parquet(path: Path) -> Iterator[Any]:
    """Open a file with pyarrow, and turn its errors into one that names the file.

    Raises:
        DataError: pyarrow is missing, or the file cannot be read or exceeds a limit.
    """
    pyarrow = load_pyarrow()
    parquet = pyarrow.parquet
    try:
        with open_regular(path) as opened:
            metadata = parquet.read_metadata(opened)
            _check_metadata(path, metadata)
            stored = [
                metadata.schema.column(place) for place in range(metadata.num_columns)
            ]
            texts = [one.path for one in stored if one.physical_type == "BYTE_ARRAY"]
            # dictionaries stay apart, so that their length is known before they are decoded
            yield parquet.ParquetFile(opened, read_dictionary=texts)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    # Python errors: text that is not UTF-8, and dates outside the range of datetime
    except (pyarrow.ArrowException, LookupError, ValueError, OverflowError) as error:
        raise DataError(f"{path.name} cannot be read as Parquet: {error}") from error


def load_pyarrow() -> Any:
    """Return the module pyarrow with the parts that read Parquet.

    Raises:
        DataError: It is not installed.
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(
            "Parquet files need pyarrow, which is not installed. Run pip install pyarrow."
        ) from error
    return pyarrow


def decoded(column: Any, guard: Guard) -> list[Any]:
    """Return the cells of a column, unless its dictionary makes them much longer than the file."""
    pyarrow = load_pyarrow()
    if pyarrow.types.is_dictionary(column.type):
        lengths = pyarrow.compute.binary_length(column.dictionary).take(column.indices)
        guard.check_length(pyarrow.compute.sum(lengths).as_py() or 0)
        column = column.dictionary_decode()
    cells: list[Any] = column.to_pylist()
    return cells


def check_expanded(path: Path, num_bytes: int) -> None:
    """Refuse a file whose content takes more memory than the limits allow.

    Args:
        path: The file.
        num_bytes: What its content takes in memory, or will take at least.

    Raises:
        DataError: The content is too large, or much larger than the file.
    """
    limits = current_limits()
    num_packed = max(1, path.stat().st_size)
    if num_bytes > limits.size_mib * MIB:
        raise limit_error(path, "the decompressed size in MiB", "size_mib", limits)
    if num_bytes > max(RATIO_FROM, limits.ratio * num_packed):
        raise limit_error(path, "decompressed over compressed size", "ratio", limits)


def _check_metadata(path: Path, metadata: Any) -> None:
    """Refuse a file whose decompressed size exceeds the limits, before it is read.

    A column of equal values takes almost no space in the file, so each row has a least size.
    """
    limits = current_limits()
    if metadata.num_columns > limits.columns:
        raise limit_error(path, "the number of columns", "columns", limits)
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    least = BYTES_PER_ROW * metadata.num_rows
    check_expanded(path, max(least, sum(group.total_byte_size for group in groups)))


def text_of(value: object) -> str:
    """Return a cell as text; a missing value is empty."""
    if isinstance(value, bytes):  # some programs do not mark their columns as text
        return value.decode(errors="surrogateescape")
    # programs other than pandas write missing numbers as NaN, which differs from itself
    return "" if value is None or value != value else str(value)
