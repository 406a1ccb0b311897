"""Reads one graph from one file of any format."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from emea.data.formats.files import GRAPH_FORMATS, BadLines, file_format
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
) -> tuple[KnowledgeGraph, GraphReading]:
    """Read a graph.

    What is read is structure. An entity is what is head or tail of a triple; its name is its full
    IRI, that of a blank node its label in the file. Left out and counted are triples whose
    object is a literal, ``owl:sameAs`` triples (they are links, not edges) and repetitions;
    ``rdf:type`` is a relation like any other. In tables every cell is a name.

    Args:
        path: the file; ``.gz`` is unpacked on the way.
        given_format: its format; ``None``: the file's name tells it.
        on_error: ``stop`` at a line that cannot be read, or ``skip`` and count it.
        keep_isolated: whether entities that have literals alone belong to the graph.

    Raises:
        ConfigError: a setting has a value that does not exist.
        DataError: the file cannot be read or holds no triple between entities.
    """
    found = file_format(path, given_format, GRAPH_FORMATS, "data.format")
    bad = BadLines(path.name, on_error, "row" if found == "parquet" else "line")
    collector = _collected(path, found, bad)
    bad.tell()
    return collector.finish(path.name, bad.num_lines, keep_isolated)


def _collected(path: Path, found: str, bad: BadLines) -> TripleCollector[Any]:
    if found == "ntriples":
        return read_ntriples(path, bad)
    if found in RDF_FORMATS:
        return read_rdf_file(path, found, bad)
    if found == "parquet":
        return _from_rows(parquet_rows(path, TRIPLE_COLUMNS, bad))
    return _from_rows(wanted_cells(path, found, TRIPLE_COLUMNS, bad))


def _from_rows(rows: Iterator[Row]) -> TripleCollector[str]:
    collector: TripleCollector[str] = TripleCollector(str)
    while block := list(islice(rows, BLOCK_SIZE)):
        heads, relations, tails = zip(*(row.cells for row in block), strict=True)
        collector.add(heads, relations, tails)
    return collector
