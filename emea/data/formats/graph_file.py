"""Reads a graph from a file in any supported format."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from emea.data.attributes import plain_text
from emea.data.formats.entity_table import (
    BLOCK_SIZE,
    EntityColumns,
    entity_columns,
    from_entity_rows,
    identifying_column,
)
from emea.data.formats.input_file import (
    FORMATS,
    NUM_NAMED,
    OPENERS,
    BadLines,
    InputFile,
    file_format,
    format_suffixes,
    graph_formats,
    loaded_reader,
)
from emea.data.formats.limits import Guard, explained_failures
from emea.data.formats.ntriples import NTriplesCollector, read_ntriples
from emea.data.formats.ontology import DECLARATIONS, IMPORTS, ontology_graph
from emea.data.formats.parquet_file import (
    decoded,
    load_pyarrow,
    opened_parquet,
    text_of,
)
from emea.data.formats.rdf import RDF_FORMATS, read_rdf_file, shown_name
from emea.data.formats.rows import (
    Columns,
    Row,
    check_same_ids,
    from_latin,
    rows,
    wanted_cells,
)
from emea.data.formats.settings import GraphForm
from emea.data.formats.triple_collector import TripleCollector
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphReading
from emea.data.names import local_name
from emea.errors import DataError
from emea.runtime.paused_collection import paused_collection

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

LEAST_SEEN = 10
"""Rows from which three columns without a known name may be a table of entities."""


def read_ntriples_graph(file: InputFile) -> TripleCollector[Any]:
    """Collect the triples of an N-Triples file."""
    return read_ntriples(file.path, file.bad, file.keep_literals)


def read_rdf(file: InputFile) -> TripleCollector[Any]:
    """Collect the triples of a file in another format of RDF."""
    return read_rdf_file(
        file.path,
        file.format,
        file.bad,
        keep_literals=file.keep_literals,
        named_graph=file.form.graph,
    )


def read_graph_file(
    path: Path,
    given_format: str | None = None,
    *,
    on_error: str = "stop",
    keep_isolated: bool = False,
    keep_literals: bool = False,
    attributes: Sequence[str] = (),
    label_language: str | None = None,
    form: GraphForm = DEFAULT_FORM,
) -> tuple[KnowledgeGraph, GraphReading]:
    r"""Read a graph.

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

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "family.tsv")
        >>> _ = path.write_text("anna\tknows\tben\nanna\tage\t30\n")
        >>> graph, reading = read_graph_file(path, attributes=["age"])
        >>> graph.all_entity_names, reading.num_literals
        (['anna', 'ben'], 1)
    """
    found = file_format(path, given_format, graph_formats(), "data.format")
    bad = BadLines(path.name, on_error, FORMATS[found].unit, form.base_iri)
    file = InputFile(
        path, found, bad, attributes=attributes, keep_literals=keep_literals, form=form
    )
    with explained_failures(path), paused_collection():
        read = loaded_reader(FORMATS[found].graph_reader)
        collector: TripleCollector[Any] = read(file)
        bad.log_others(path)
        if not _is_ontology(collector, found, form):
            graph, reading = collector.finish(
                path.name, bad.num_lines, keep_isolated, label_language
            )
            return graph, replace(reading, columns=collector.columns)
        everything = _whole_ontology(collector, file, on_error)
    return ontology_graph(*everything, keep_literals, keep_isolated, label_language)


def _whole_ontology(
    collector: TripleCollector[Any], file: InputFile, on_error: str
) -> tuple[KnowledgeGraph, GraphReading]:
    """Return all triples of an ontology and its imports, also those that are not wanted.

    Its meaning depends on all of them. Those that are not wanted are left out at the end.
    """
    path, bad = file.path, file.bad
    read_imports(collector, path, on_error, file.keep_literals, file.form.base_iri)
    collector.keep_literals = True
    return collector.finish(path.name, bad.num_lines, keep_isolated=True)


def _is_ontology(collector: TripleCollector[Any], found: str, form: GraphForm) -> bool:
    if not FORMATS[found].is_rdf or form.ontology is not None:
        return bool(form.ontology) and FORMATS[found].is_rdf
    # N-Triples are read as bytes
    terms = [f"<{name}>" for name in DECLARATIONS]
    return any(
        term in collector.entities or term.encode() in collector.entities
        for term in terms
    )


def read_imports(
    collector: TripleCollector[Any],
    path: Path,
    on_error: str,
    keep_literals: bool,
    base_iri: str | None = None,
) -> None:
    """Read the files that an ontology imports, and those that these import.

    A file is found by the last part of the imported IRI, in the folder of the ontology. Other
    imports, and those of N-Triples, are reported.

    Args:
        collector: The triples of the ontology. Those of the files are added.
        path: The file of the ontology.
        on_error: ``stop`` at a statement that cannot be read, or ``skip`` and count it.
        keep_literals: Whether to keep all literals, not only labels.
        base_iri: What relative IRIs are resolved against.
    """
    has_bytes = isinstance(collector, NTriplesCollector)
    relation: Any = f"<{IMPORTS}>".encode() if has_bytes else f"<{IMPORTS}>"
    known = set[Any]()
    files = {path.name}
    # IRIs that end in the same name mean the same file, which is looked up once
    places: dict[str, tuple[Path, str] | None] = {}
    missing: dict[str, list[str]] = {}
    while new := set(collector.tails_of(relation)) - known:
        known |= new
        for iri in sorted(
            shown_name(term.decode() if has_bytes else term) for term in new
        ):
            name = local_name(iri)
            if name not in places:
                places[name] = None if has_bytes else _imported_file(path, name)
            found = places[name]
            if found is None:
                missing.setdefault(name, []).append(iri)
            elif found[0].name not in files:
                files.add(found[0].name)
                log.info("%s imports %s, which is read, too", path.name, found[0].name)
                bad = BadLines(found[0].name, on_error, base_iri=base_iri)
                read_rdf_file(
                    *found, bad, keep_literals=keep_literals, earlier=collector
                )
                bad.log_others(found[0])
    _warn_of_imports(path.name, missing, ", as all imports of N-Triples" * has_bytes)


def _warn_of_imports(
    label: str, missing: Mapping[str, Sequence[str]], reason: str
) -> None:
    """Warn of imports that are not read: the first files by name, then their number."""
    for name, iris in islice(missing.items(), NUM_NAMED):
        more = f" and {len(iris) - 1:,} more IRIs of this name" if len(iris) > 1 else ""
        log.warning(
            "%s imports %s%s, which is not read%s. Save it as %s.owl in the same folder if the "
            "alignment needs its terms.",
            label,
            iris[0],
            more,
            reason,
            name,
        )
    if len(missing) > NUM_NAMED:
        log.warning(
            "%s imports %d more files that are not read",
            label,
            len(missing) - NUM_NAMED,
        )


def _imported_file(path: Path, name: str) -> tuple[Path, str] | None:
    """Return the RDF file of this name in the folder of an ontology, and its format."""
    for one in (name, *(name + suffix for suffix in format_suffixes())):
        for more in ("", *OPENERS):
            # not every last part of an IRI is the name of a file
            with suppress(OSError, ValueError, DataError):
                place = path.with_name(one + more)
                if name and place.is_file():
                    kind = file_format(place, None, [*RDF_FORMATS], "data.format")
                    return (
                        place,
                        "turtle" if kind == "ntriples" else kind,
                    )  # Turtle includes it
    return None


def read_table(file: InputFile) -> TripleCollector[str]:
    """Collect the triples of a table, which has one triple or one entity in each row.

    Raises:
        DataError: The columns are neither those of triples nor those of entities.
    """
    path, found, bad = file.path, file.format, file.bad
    attributes, form = file.attributes, file.form
    header = _first_row(path, found)
    is_named = Columns.without_header(TRIPLE_COLUMNS).from_header(header) is not None
    entities = None if is_named else entity_columns(path.name, header, form, attributes)
    if (
        entities is not None
        and form.id_column is None
        and _are_triples(path, found, entities.id)
    ):
        entities = None
    elif entities is None and not is_named and bad.stops:
        entities = _columns_without_id(path, found, header, form, attributes)

    def wanted(
        names: Sequence[Sequence[str]], others: Sequence[str], is_latin: bool = False
    ) -> Iterator[Row]:
        if found == "parquet":
            return parquet_rows(path, names, bad, others)
        return wanted_cells(
            path, found, names, bad, attributes=others, is_latin=is_latin
        )

    if entities is not None:
        entity_rows = wanted(((entities.id.lower(),),), entities.others, is_latin=True)
        collector = from_entity_rows(
            path.name, entity_rows, entities, form, file.keep_literals
        )
        collector.columns = tuple(cell.strip() for cell in header)
        return collector
    if not is_named and len(TRIPLE_COLUMNS) < len(header) <= MOST_NAMED and bad.stops:
        raise _no_id_column(path.name, header)
    triple_rows = wanted(TRIPLE_COLUMNS, attributes)
    collector = from_rows(triple_rows, frozenset(attributes), file.keep_literals)
    if not is_named:
        collector.check_column_order(path.name)
    return collector


def _no_id_column(name: str, header: Sequence[str]) -> DataError:
    return DataError(
        f"{name} has the columns {', '.join(header)}, and none of them is an id column. "
        "Set data.id_column to the column that identifies the entity of each row, or name the "
        "columns of a table of triples head, relation, tail."
    )


def _first_row(path: Path, found: str) -> list[str]:
    """Return the cells of the first row, or the names of the columns of a Parquet file."""
    if found == "parquet":
        with opened_parquet(path) as file:
            return list(file.schema_arrow.names)
    with suppress(DataError):  # the row is reported when all rows are read
        table = rows(path, found, BadLines(path.name))
        return [from_latin(cell) for row in islice(table, 1) for cell in row.cells]
    return []


def _columns_without_id(
    path: Path,
    found: str,
    header: Sequence[str],
    form: GraphForm,
    attributes: Sequence[str],
) -> EntityColumns | None:
    """Return the columns of a table of entities without an id column, if one identifies its rows.

    Three columns are triples unless the second one has different cells in most rows, which
    relations never have.
    """
    rows = _sample(path, found, header)
    name = identifying_column(header, rows)
    if name is None or len(header) > MOST_NAMED:
        return None
    if len(header) == len(TRIPLE_COLUMNS):
        seconds = [row[1] for row in rows if len(row) == len(header)]
        is_first = name == header[0].strip()
        if (
            not is_first
            or len(set(seconds)) <= len(seconds) / 2
            or len(seconds) < LEAST_SEEN
        ):
            return None
    log.warning(
        "%s has no column called id. Its column %s identifies the entities, because its cells are "
        "all different. Set data.id_column if another column does.",
        path.name,
        name,
    )
    return entity_columns(path.name, header, replace(form, id_column=name), attributes)


def _sample(path: Path, found: str, header: Sequence[str]) -> list[list[str]]:
    """Return the first rows of a table after its header, without those that cannot be read."""
    if found == "parquet":
        with opened_parquet(path) as file:
            batch = next(file.iter_batches(BLOCK_SIZE), None)
            if batch is None:
                return []
            guard = Guard(path, path.stat().st_size)
            cells = [decoded(column, guard) for column in batch.columns]
            return [list(map(text_of, row)) for row in zip(*cells, strict=True)]
    found_rows = list[list[str]]()
    with suppress(DataError):  # the row is reported when all rows are read
        table = islice(rows(path, found, BadLines(path.name)), 1, BLOCK_SIZE)
        found_rows.extend([from_latin(cell) for cell in row.cells] for row in table)
    return found_rows


def _are_triples(path: Path, found: str, id_column: str) -> bool:
    """Return whether the id column of a table may be that of relations or tails, which repeat."""
    header = [cell.strip() for cell in _first_row(path, found)]
    place = header.index(id_column)
    column = list[str]()
    if found == "parquet" or not place or len(header) != len(TRIPLE_COLUMNS):
        return False
    with suppress(DataError):  # the row is reported when all rows are read
        table = islice(rows(path, found, BadLines(path.name)), BLOCK_SIZE)
        column.extend(
            row.cells[place] for row in table if len(row.cells) == len(header)
        )
    if repeats := len(set(column)) < len(column):
        warning = (
            "%s is read as triples. If each row is an entity, set data.id_column=%s."
        )
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
    path: Path,
    names: Sequence[Sequence[str]],
    bad: BadLines,
    attributes: Sequence[str] = (),
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
    with opened_parquet(path) as file:
        guard = Guard(path, path.stat().st_size)
        wanted = _wanted(path, file.schema_arrow.names, names)
        stored = {name.strip(): name for name in file.schema_arrow.names}
        marked = [name for name in attributes if name in stored]
        read = [*wanted, *(stored[name] for name in marked)]
        _check_columns(path, file.schema_arrow, read)
        ends = wanted[0], wanted[-1]
        check_same_ids(
            path.name, {name: file.schema_arrow.field(name).type for name in ends}
        )
        columns = Columns.without_header(names)._replace(
            width=len(read),
            attributes=[(name, read.index(stored[name])) for name in marked],
        )
        number = 0
        for batch in file.iter_batches(columns=read):
            cells_of = [decoded(batch.column(name), guard) for name in read]
            values = zip(*cells_of, strict=True)
            for number, cells in enumerate(values, number + 1):  # noqa: B020
                row = Row(number, list(map(text_of, cells)))
                if (problem := columns.problem(row.cells)) is not None:
                    bad.add(number, problem)
                else:
                    yield columns.wanted(row)


def _wanted(
    path: Path, given: Sequence[str], names: Sequence[Sequence[str]]
) -> list[str]:
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
    pyarrow = load_pyarrow()
    stripped = [name.strip() for name in schema.names]
    for name in wanted:
        if stripped.count(name.strip()) > 1:
            raise DataError(
                f"{path.name} has more than one column {name}. Rename the others."
            )
        kind = schema.field(name).type
        if pyarrow.types.is_nested(kind):
            raise DataError(
                f"{path.name}: column {name} contains {kind}, but each row must contain one name"
            )
