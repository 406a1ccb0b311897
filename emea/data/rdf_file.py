"""Reads Turtle and RDF/XML, statement by statement."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyoxigraph
from pyoxigraph import Quad, RdfFormat

from emea.data.bad_lines import BadLines
from emea.data.byte_stream import byte_stream
from emea.data.rdf_terms import BlankNodeLabels, columns, reason, shown_name, sorted_out
from emea.data.triple_collector import TripleCollector
from emea.errors import DataError

RDF_FORMATS = {"turtle": RdfFormat.TURTLE, "rdfxml": RdfFormat.RDF_XML}
RESUMED = ("turtle",)
"""Formats in which the parser finds the next statement after one that it cannot read."""

BLOCK_SIZE = 1 << 15


def read_rdf_file(path: Path, file_format: str, bad: BadLines) -> TripleCollector[str]:
    """The triples of a file.

    Args:
        path: the file, packed where its name ends in ``.gz``.
        file_format: ``turtle`` or ``rdfxml``.
        bad: told of statements that cannot be read; in RDF/XML nothing can be read after one.
    """
    collector: TripleCollector[str] = TripleCollector(shown_name)
    labels = BlankNodeLabels()
    quads = statements(path, file_format, bad)
    while block := list(islice(quads, BLOCK_SIZE)):
        edges, described = sorted_out(block, labels)
        collector.add(*columns(edges))
        collector.add_literals(described)
    return collector


def statements(path: Path, file_format: str, bad: BadLines) -> Iterator[Quad]:
    """The statements of a file, in its order."""
    with byte_stream(path) as stream:
        parser = pyoxigraph.parse(stream, RDF_FORMATS[file_format])
        last_bad_line = 0
        while True:
            try:
                yield next(parser)
            except StopIteration:
                return
            except SyntaxError as error:
                line = error.lineno or 1
                if file_format not in RESUMED:
                    raise DataError(f"{path.name}, line {line}: {reason(error)}") from error
                if line != last_bad_line:  # one mistake may be told more than once
                    bad.add(line, reason(error))
                last_bad_line = line
