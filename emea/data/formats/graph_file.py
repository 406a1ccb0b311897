"""Reads one graph from one file of any format."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from emea.data.formats.files import GRAPH_FORMATS, BadLines, file_format
from emea.data.formats.literal_terms import plain_text
from emea.data.formats.ntriples import read_ntriples
from emea.data.formats.parquet import parquet_rows
from emea.data.formats.rdf import RDF_FORMATS, read_rdf_file
from emea.data.formats.rows import Row, wanted_cells
from emea.data.formats.triple_collector import TripleCollector
from emea.data.graph import KnowledgeGraph
from emea.data.reading import GraphReading

TRIPLE_COLUMNS = (
    ("head", "subject", "s"),
    ("relation", "predicate", "p"),
    ("tail", "object", "o"),
)
"""What a header may call head, relation and tail."""

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
    it is a blank node. ``rdf:type`` is a relation like any other. ``owl:sameAs`` triples (they are
    links, not edges) and repetitions are left out and counted. Triples whose object is a literal
    are counted; they are left out of the graph unless ``keep_literals`` is set, except that
    entities keep a label to show. In tables every cell is a name, unless its relation or its
    column is marked as an attribute.

    Args:
        path: the file; ``.gz`` is unpacked on the way.
        given_format: its format; ``None``: the file's name tells it.
        on_error: ``stop`` at a line that cannot be read, or ``skip`` and count it.
        keep_isolated: whether entities that only have literals belong to the graph.
        keep_literals: keep the literals as attribute triples of the graph.
        attributes: tables only: relations whose tail is a literal, and further columns that hold a
            literal of the head.
        label_language: preferred language of the labels, such as ``de``.

    Raises:
        ConfigError: a setting has a value that does not exist.
        DataError: the file cannot be read or holds no triple between entities.
    """
    found = file_format(path, given_format, GRAPH_FORMATS, "data.format")
    bad = BadLines(path.name, on_error, "row" if found == "parquet" else "line")
    collector: TripleCollector[Any]
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
        collector = _from_rows(rows, frozenset(given), keep_literals)
    bad.tell()
    return collector.finish(path.name, bad.num_lines, keep_isolated, label_language)


def _from_rows(
    rows: Iterator[Row], attributes: frozenset[str], keep_literals: bool
) -> TripleCollector[str]:
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
