"""Reads a graph from a file in any supported format."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from emea.data.attributes import plain_text
from emea.data.formats.input_file import GRAPH_FORMATS, BadLines, content_explained, file_format
from emea.data.formats.limits import explained_failures
from emea.data.formats.ntriples import read_ntriples
from emea.data.formats.parquet import parquet_rows
from emea.data.formats.rdf import RDF_FORMATS, read_rdf_file
from emea.data.formats.rows import Row, wanted_cells
from emea.data.formats.triple_collector import TripleCollector
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphReading
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
