"""Reads a graph from a file in any supported format. Parquet needs pyarrow, which is optional."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from emea.data.attributes import plain_text
from emea.data.formats.input_file import GRAPH_FORMATS, BadLines, content_explained, file_format
from emea.data.formats.limits import (
    MIB,
    RATIO_FROM,
    check_regular_file,
    current_limits,
    explained_failures,
    limit_error,
)
from emea.data.formats.ntriples import read_ntriples
from emea.data.formats.rdf import RDF_FORMATS, read_rdf_file
from emea.data.formats.rows import Columns, Row, check_same_ids, wanted_cells
from emea.data.formats.triple_collector import TripleCollector
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphReading
from emea.errors import DataError
from emea.runtime.paused_collection import paused_collection

TRIPLE_COLUMNS = (
    ("head", "subject", "s"),
    ("relation", "predicate", "p"),
    ("tail", "object", "o"),
)
"""Column names for head, relation and tail that a header may use."""

BLOCK_SIZE = 1 << 15


def read_graph_file(
    path: Path,
    given_format: str | None = None,
    on_error: str = "stop",
    keep_isolated: bool = False,
    keep_literals: bool = False,
    attributes: Sequence[str] = (),
    label_language: str | None = None,
) -> tuple[KnowledgeGraph, GraphReading]:
    """Read a graph.

    An entity is the head or tail of a triple. Its name is its full IRI, or its label in the file if
    it is a blank node. ``rdf:type`` is a relation like any other. ``owl:sameAs`` triples, which are
    links and not edges, and repeated triples are left out and counted. Triples whose object is a
    literal are counted. They are left out of the graph unless ``keep_literals`` is set, but
    entities always keep a label to show. In tables every cell is a name, unless its relation or
    its column is marked as an attribute.

    Args:
        path: The file. A ``.gz`` file is decompressed while it is read.
        given_format: Its format. ``None`` chooses the format by the suffix of the file.
        on_error: ``stop`` at a line that cannot be read, or ``skip`` and count it.
        keep_isolated: Whether to keep entities that only have literals.
        keep_literals: Whether to keep the literals as attribute triples of the graph.
        attributes: For tables only: relations whose tail is a literal, and further columns that
            contain a literal of the head.
        label_language: The preferred language of labels, such as ``de``.

    Raises:
        ConfigError: A setting has an unknown value.
        DataError: The file cannot be read or contains no triple between entities.
    """
    key = "data.format"
    found = file_format(path, given_format, GRAPH_FORMATS, key)
    bad = BadLines(path.name, on_error, "row" if found == "parquet" else "line")
    collector: TripleCollector[Any]
    explained = content_explained(path, found, given_format, key)
    with explained, explained_failures(path), paused_collection():
        if found == "ntriples":
            collector = read_ntriples(path, bad, keep_literals)
        elif found in RDF_FORMATS:
            collector = read_rdf_file(path, found, bad, keep_literals)
        else:
            given = list(attributes)
            if found == "parquet":
                rows = parquet_rows(path, TRIPLE_COLUMNS, bad, given)
            else:
                rows = wanted_cells(path, found, TRIPLE_COLUMNS, bad, given)
            collector = from_rows(rows, frozenset(given), keep_literals)
        bad.log_others()
        return collector.finish(path.name, bad.num_lines, keep_isolated, label_language)


def from_rows(
    rows: Iterator[Row], attributes: frozenset[str], keep_literals: bool
) -> TripleCollector[str]:
    """Collect the triples of table rows.

    Args:
        rows: The rows.
        attributes: Relations whose tail is a literal.
        keep_literals: Whether to keep all literals, not only labels.
    """
    collector: TripleCollector[str] = TripleCollector(str, plain_text, keep_literals)
    while block := list(islice(rows, BLOCK_SIZE)):
        edges = [row.cells for row in block if row.cells[1] not in attributes]
        if edges:
            collector.add(*zip(*edges, strict=True))
        literals = [tuple(row.cells) for row in block if row.cells[1] in attributes]
        literals += [(row.cells[0], *cell) for row in block for cell in row.attributes]
        if literals:
            collector.add_literals(*zip(*literals, strict=True))
    return collector


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
