"""Reads Turtle and RDF/XML, statement by statement."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pyoxigraph
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat

from emea.data.formats.files import BadLines, byte_stream
from emea.data.formats.literal_terms import literal_parts
from emea.data.formats.triple_collector import TripleCollector
from emea.errors import DataError

RANDOM_LABEL = re.compile(r"[a-f][0-9a-f]{23,31}")
"""How the parser calls a blank node to which the file gives no label: 128 random bits in hex,
without leading zeros, of which there are hardly ever more than a few."""

StatementTerms = tuple[str, str, str]


def shown_name(term: str) -> str:
    """The name of a term as results show it: an IRI without its brackets."""
    return term[1:-1] if term.startswith("<") else term


class BlankNodeLabels:
    """Labels for blank nodes that are the same in each reading of a file.

    A node that the file does not name gets a random label from the parser. It is called
    ``_:[1]``, ``_:[2]``, ... in order of appearance, which no file can write as a label.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def __call__(self, term: str) -> str:
        """The label to use for a term; an IRI stays what it is."""
        if term.startswith("_:") and RANDOM_LABEL.fullmatch(term, 2):
            return self._numbers.setdefault(term, f"_:[{len(self._numbers) + 1}]")
        return term


def sorted_out(
    quads: Iterable[Quad], label: Callable[[str], str]
) -> tuple[list[StatementTerms], list[StatementTerms]]:
    """Triples between entities, and those with a literal.

    Statements about statements (RDF-star) have no place in a graph of entities: a quoted triple
    counts as a literal without text.
    """
    edges, literals = [], []
    for quad in quads:
        subject, tail = quad.subject, quad.object
        if not isinstance(subject, NamedNode | BlankNode):
            continue
        if isinstance(tail, NamedNode | BlankNode):
            edges.append((label(str(subject)), str(quad.predicate), label(str(tail))))
        else:
            value = str(tail) if isinstance(tail, Literal) else '""'
            literals.append((label(str(subject)), str(quad.predicate), value))
    return edges, literals


def columns(edges: Sequence[StatementTerms]) -> tuple[list[str], list[str], list[str]]:
    """Heads, relations and tails of triples."""
    heads, relations, tails = zip(*edges, strict=True) if edges else ((), (), ())
    return list(heads), list(relations), list(tails)


def reason(error: SyntaxError) -> str:
    """What the parser says, without the place it speaks of."""
    message = error.msg or str(error)
    return message.partition(": ")[2] if message.startswith("Parser error ") else message


RDF_FORMATS = {"turtle": RdfFormat.TURTLE, "rdfxml": RdfFormat.RDF_XML}
RESUMED = ("turtle",)
"""Formats in which the parser finds the next statement after one that it cannot read."""

BLOCK_SIZE = 1 << 15


def read_rdf_file(
    path: Path, file_format: str, bad: BadLines, keep_literals: bool = False
) -> TripleCollector[str]:
    """The triples of a file.

    Args:
        path: the file, packed where its name ends in ``.gz``.
        file_format: ``turtle`` or ``rdfxml``.
        bad: counts statements that cannot be read; in RDF/XML nothing can be read after one.
        keep_literals: keep all literals; off, only those that are labels.
    """
    collector = TripleCollector(shown_name, literal_parts, keep_literals)
    labels = BlankNodeLabels()
    quads = statements(path, file_format, bad)
    while block := list(islice(quads, BLOCK_SIZE)):
        edges, literals = sorted_out(block, labels)
        collector.add(*columns(edges))
        collector.add_literals(*columns(literals))
    return collector


def statements(path: Path, file_format: str, bad: BadLines) -> Iterator[Quad]:
    """The statements of a file, in its order."""
    with byte_stream(path, has_lines=False, is_xml=file_format == "rdfxml") as stream:
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
