"""Reads a graph from a file in any supported format. Parquet needs pyarrow, which is optional."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from emea.config.settings.data import GraphForm
from emea.data.attributes import plain_text
from emea.data.formats.entity_table import BLOCK_SIZE, entity_columns, from_entity_rows
from emea.data.formats.input_file import (
    GRAPH_FORMATS,
    OPENERS,
    RDF_NAMES,
    SUFFIXES,
    TABLE_FORMATS,
    BadLines,
    file_format,
)
from emea.data.formats.limits import (
    MIB,
    RATIO_FROM,
    Guard,
    current_limits,
    explained_failures,
    limit_error,
)
from emea.data.formats.ntriples import NTriplesCollector, read_ntriples
from emea.data.formats.ontology import DECLARATIONS, IMPORTS, ontology_graph
from emea.data.formats.rdf import RDF_FORMATS, read_rdf_file, shown_name
from emea.data.formats.rows import Columns, Row, check_same_ids, from_latin, rows, wanted_cells
from emea.data.formats.triple_collector import TripleCollector
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphReading
from emea.data.names import local_name
from emea.errors import DataError
from emea.runtime.paused_collection import paused_collection
from emea.runtime.regular_file import open_regular

log = logging.getLogger(__name__)

TRIPLE_COLUMNS = (
    ("head", "subject", "s"),
    ("relation", "predicate", "p"),
    ("tail", "object", "o"),
)
"""Column names for head, relation and tail that a header may use."""

DEFAULT_FORM = GraphForm()

MOST_NAMED = 100
"""Maximum number of columns that an error message lists."""

BYTES_PER_ROW = 16
"""What a row of a Parquet file takes in memory at least."""


def read_graph_file(
    path: Path,
    given_format: str | None = None,
    on_error: str = "stop",
    keep_isolated: bool = False,
    keep_literals: bool = False,
    attributes: Sequence[str] = (),
    label_language: str | None = None,
    form: GraphForm = DEFAULT_FORM,
) -> tuple[KnowledgeGraph, GraphReading]:
    """Read a graph.

    An entity is the head or tail of a triple. Its name is its full IRI, or its label in the file if
    it is a blank node. ``rdf:type`` is a relation like any other. ``owl:sameAs`` triples, which are
    links and not edges, and repeated triples are left out and counted. Triples whose object is a
    literal are counted. They are left out of the graph unless ``keep_literals`` is set, but
    entities always keep a label to show. In tables of triples every cell is a name, unless its
    relation or its column is marked as an attribute. In tables with an id column every other cell
    is a literal, unless its column is marked as a reference.

    Args:
        path: The file. A ``.gz`` file is decompressed while it is read.
        given_format: Its format. ``None`` finds it out.
        on_error: ``stop`` at a line that cannot be read, or ``skip`` and count it.
        keep_isolated: Whether to keep entities that only have literals.
        keep_literals: Whether to keep the literals as attribute triples of the graph.
        attributes: For tables only: relations whose tail is a literal, and further columns that
            contain a literal of the head. With an id column: the columns to read.
        label_language: The preferred language of labels, such as ``de``.
        form: Whether the file is an ontology, or what the columns of a table mean.

    Raises:
        ConfigError: A setting has an unknown value.
        DataError: The file cannot be read or contains no triple between entities.
    """
    found = file_format(path, given_format, GRAPH_FORMATS, "data.format")
    bad = BadLines(path.name, on_error, "row" if found == "parquet" else "line")
    collector: TripleCollector[Any]
    with explained_failures(path), paused_collection():
        if found == "ntriples":
            collector = read_ntriples(path, bad, keep_literals)
        elif found in RDF_FORMATS:
            collector = read_rdf_file(path, found, bad, keep_literals, named_graph=form.graph)
        else:
            collector = read_table(path, found, bad, attributes, keep_literals, form)
        bad.log_others()
        if not _is_ontology(collector, found, form):
            return collector.finish(path.name, bad.num_lines, keep_isolated, label_language)
        read_imports(collector, path, on_error, keep_literals)
        collector.keep_literals = True
        everything, reading = collector.finish(path.name, bad.num_lines, keep_isolated=True)
        return ontology_graph(everything, reading, keep_literals, keep_isolated, label_language)


def _is_ontology(collector: TripleCollector[Any], found: str, form: GraphForm) -> bool:
    if found in TABLE_FORMATS or form.ontology is not None:
        return bool(form.ontology) and found not in TABLE_FORMATS
    # N-Triples are read as bytes
    terms = [f"<{name}>" for name in DECLARATIONS]
    return any(term in collector.entities or term.encode() in collector.entities for term in terms)


def read_imports(
    collector: TripleCollector[Any], path: Path, on_error: str, keep_literals: bool
) -> None:
    """Read the files that an ontology imports, and those that these import.

    A file is found by the last part of the imported IRI, in the folder of the ontology. Other
    imports, and those of N-Triples, are reported.

    Args:
        collector: The triples of the ontology. Those of the files are added.
        path: The file of the ontology.
        on_error: ``stop`` at a statement that cannot be read, or ``skip`` and count it.
        keep_literals: Whether to keep all literals, not only labels.
    """
    has_bytes = isinstance(collector, NTriplesCollector)
    relation: Any = f"<{IMPORTS}>".encode() if has_bytes else f"<{IMPORTS}>"
    known, files = set[Any](), {path.name}
    while new := set(collector.tails_of(relation)) - known:
        known |= new
        for iri in sorted(shown_name(term.decode() if has_bytes else term) for term in new):
            name = local_name(iri)
            found = None if has_bytes else _imported_file(path, name)
            if found is None:
                log.warning(
                    "%s imports %s, which is not read%s. Save it as %s.owl in the same folder if "
                    "the alignment needs its terms.",
                    *(path.name, iri, ", as all imports of N-Triples" * has_bytes, name),
                )
            elif found[0].name not in files:
                files.add(found[0].name)
                log.info("%s imports %s, which is read, too", path.name, found[0].name)
                bad = BadLines(found[0].name, on_error)
                read_rdf_file(*found, bad, keep_literals, collector)


def _imported_file(path: Path, name: str) -> tuple[Path, str] | None:
    """Return the RDF file of this name in the folder of an ontology, and its format."""
    for one in (name, *(name + suffix for suffix in SUFFIXES)):
        for more in ("", *OPENERS):
            # not every last part of an IRI is the name of a file
            with suppress(OSError, ValueError, DataError):
                place = path.with_name(one + more)
                if name and place.is_file():
                    kind = file_format(place, None, RDF_NAMES, "data.format")
                    return place, "turtle" if kind == "ntriples" else kind  # Turtle includes it
    return None


def read_table(
    path: Path,
    found: str,
    bad: BadLines,
    attributes: Sequence[str],
    keep_literals: bool,
    form: GraphForm,
) -> TripleCollector[str]:
    """Collect the triples of a table, which has one triple or one entity in each row.

    Args:
        path: The file.
        found: Its format.
        bad: Handles rows that cannot be read.
        attributes: Relations and columns with literals.
        keep_literals: Whether to keep all literals, not only labels.
        form: What the columns of a table of entities mean.

    Raises:
        DataError: The columns are neither those of triples nor those of entities.
    """
    header = _first_row(path, found)
    is_named = Columns.without_header(TRIPLE_COLUMNS).from_header(header) is not None
    entities = None if is_named else entity_columns(path.name, header, form, attributes)
    if entities is not None and form.id_column is None and _are_triples(path, found, entities[0]):
        entities = None

    def wanted(
        names: Sequence[Sequence[str]], others: Sequence[str], is_latin: bool = False
    ) -> Iterator[Row]:
        if found == "parquet":
            return parquet_rows(path, names, bad, others)
        return wanted_cells(path, found, names, bad, others, is_latin)

    if entities is not None:
        id_column, others = entities
        entity_rows = wanted(((id_column.lower(),),), others, is_latin=True)
        return from_entity_rows(path.name, entity_rows, form, keep_literals)
    if not is_named and len(TRIPLE_COLUMNS) < len(header) <= MOST_NAMED and bad.stops:
        raise DataError(
            f"{path.name} has the columns {', '.join(header)}, and none of them is an id column. "
            "Set data.id_column to the column that identifies the entity of each row, or name the "
            "columns of a table of triples head, relation, tail."
        )
    triple_rows = wanted(TRIPLE_COLUMNS, attributes)
    collector = from_rows(triple_rows, frozenset(attributes), keep_literals)
    if not is_named:
        collector.check_column_order(path.name)
    return collector


def _first_row(path: Path, found: str) -> list[str]:
    """Return the cells of the first row, or the names of the columns of a Parquet file."""
    if found == "parquet":
        with _opened_parquet(path) as file:
            return list(file.schema_arrow.names)
    with suppress(DataError):  # the row is reported when all rows are read
        table = rows(path, found, BadLines(path.name))
        return [from_latin(cell) for row in islice(table, 1) for cell in row.cells]
    return []


def _are_triples(path: Path, found: str, id_column: str) -> bool:
    """Return whether the id column of a table may be that of relations or tails, which repeat."""
    header = [cell.strip() for cell in _first_row(path, found)]
    place, column = header.index(id_column), list[str]()
    if found == "parquet" or not place or len(header) != len(TRIPLE_COLUMNS):
        return False
    with suppress(DataError):  # the row is reported when all rows are read
        table = islice(rows(path, found, BadLines(path.name)), BLOCK_SIZE)
        column.extend(row.cells[place] for row in table if len(row.cells) == len(header))
    if repeats := len(set(column)) < len(column):
        warning = "%s is read as triples. If each row is an entity, set data.id_column=%s."
        log.warning(warning, path.name, id_column)
    return repeats


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
        literals = [row.cells for row in block if row.cells[1] in attributes]
        literals += [[row.cells[0], *cell] for row in block for cell in row.attributes]
        collector.add_rows(edges, literals)
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
    with _opened_parquet(path) as file:
        guard = Guard(path, path.stat().st_size)
        wanted = _wanted(path, file.schema_arrow.names, names)
        stored = {name.strip(): name for name in file.schema_arrow.names}
        marked = [name for name in attributes if name in stored]
        read = [*wanted, *(stored[name] for name in marked)]
        _check_columns(path, file.schema_arrow, read)
        ends = wanted[0], wanted[-1]
        check_same_ids(path.name, {name: file.schema_arrow.field(name).type for name in ends})
        columns = Columns.without_header(names)._replace(
            width=len(read), attributes=[(name, read.index(stored[name])) for name in marked]
        )
        number = 0
        for batch in file.iter_batches(columns=read):
            cells_of = [_decoded(batch.column(name), guard) for name in read]
            values = zip(*cells_of, strict=True)
            for number, cells in enumerate(values, number + 1):  # noqa: B020
                row = Row(number, list(map(_text, cells)))
                if (problem := columns.problem(row.cells)) is not None:
                    bad.add(number, problem)
                else:
                    yield columns.wanted(row)


@contextmanager
def _opened_parquet(path: Path) -> Iterator[Any]:
    """Open a file with pyarrow, and turn its errors into one that names the file."""
    pyarrow, parquet = _pyarrow()
    try:
        with open_regular(path) as opened:
            metadata = parquet.read_metadata(opened)
            _check_size(path, metadata)
            stored = [metadata.schema.column(place) for place in range(metadata.num_columns)]
            texts = [one.path for one in stored if one.physical_type == "BYTE_ARRAY"]
            # dictionaries stay apart, so that their length is known before they are decoded
            yield parquet.ParquetFile(opened, read_dictionary=texts)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    # Python errors: text that is not UTF-8, and dates outside the range of datetime
    except (pyarrow.ArrowException, ValueError, OverflowError) as error:
        raise DataError(f"{path.name} cannot be read as Parquet: {error}") from error


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(
            "Parquet files need pyarrow, which is not installed. In a clone of emea, run "
            "pip install '.[parquet]'."
        ) from error
    return pyarrow, pyarrow.parquet


def _decoded(column: Any, guard: Guard) -> list[Any]:
    """Return the cells of a column, unless its dictionary makes them much longer than the file."""
    pyarrow, _ = _pyarrow()
    if pyarrow.types.is_dictionary(column.type):
        lengths = pyarrow.compute.binary_length(column.dictionary).take(column.indices)
        guard.check_length(pyarrow.compute.sum(lengths).as_py() or 0)
        column = column.dictionary_decode()
    cells: list[Any] = column.to_pylist()
    return cells


def _check_size(path: Path, metadata: Any) -> None:
    """Refuse a file whose decompressed size exceeds the limits, before it is read.

    A column of equal values takes almost no space in the file, so each row has a least size.
    """
    limits, num_packed = current_limits(), max(1, path.stat().st_size)
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    num_bytes = max(
        BYTES_PER_ROW * metadata.num_rows, sum(group.total_byte_size for group in groups)
    )
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


def _check_columns(path: Path, schema: Any, wanted: Sequence[str]) -> None:
    """Refuse wanted columns that are ambiguous or whose cells are not single values."""
    pyarrow, _ = _pyarrow()
    stripped = [name.strip() for name in schema.names]
    for name in wanted:
        if stripped.count(name.strip()) > 1:
            raise DataError(f"{path.name} has more than one column {name}. Rename the others.")
        kind = schema.field(name).type
        if pyarrow.types.is_nested(kind):
            raise DataError(
                f"{path.name}: column {name} contains {kind}, but each row must contain one name"
            )


def _text(value: object) -> str:
    if isinstance(value, bytes):  # some programs do not mark their columns as text
        return value.decode(errors="surrogateescape")
    # programs other than pandas write missing numbers as NaN, which differs from itself
    return "" if value is None or value != value else str(value)
