"""Reads RDF in all formats except N-Triples, statement by statement."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import pyoxigraph
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat

from emea.data.attributes import literal_parts
from emea.data.formats.input_file import BadLines, byte_stream
from emea.data.formats.limits import Guard
from emea.data.formats.rdf_guards import JSONGuard, TurtleGuard, XMLGuard
from emea.data.formats.repairs import HAS_SCHEME
from emea.data.formats.settings import INPUT_FORMATS
from emea.data.formats.triple_collector import TripleCollector
from emea.errors import DataError

RANDOM_LABEL = re.compile(r"[a-f][0-9a-f]{23,31}")
"""Label that the parser gives to an unnamed blank node: 128 random bits in hexadecimal digits,
without leading zeros, of which there are rarely more than a few."""

StatementTerms = tuple[str, str, str]


def shown_name(term: str) -> str:
    """Return the name of a term as results show it: an IRI without its brackets."""
    return term[1:-1] if term.startswith("<") else term


def blank_node_labels(prefix: str = "") -> Callable[[str], str]:
    """Return a function that gives blank nodes the same labels each time a file is read.

    The parser gives a random label to a node that the file does not name. The function replaces it
    with ``_:[1]``, ``_:[2]``, ... in order of appearance. No file can contain such labels. Other
    terms are returned unchanged.

    Args:
        prefix: The beginning of all labels, so that those of several files differ.
    """
    numbers: dict[str, str] = {}

    def label(term: str) -> str:
        if term.startswith("_:") and RANDOM_LABEL.fullmatch(term, 2):
            return numbers.setdefault(term, f"_:{prefix}[{len(numbers) + 1}]")
        return f"_:{prefix}{term[2:]}" if prefix and term.startswith("_:") else term

    return label


def sorted_out(
    quads: Iterable[Quad], label: Callable[[str], str]
) -> tuple[list[StatementTerms], list[StatementTerms]]:
    """Return the triples between entities, and the triples with a literal.

    Statements about statements (RDF-star) do not fit into a graph of entities. Those with a quoted
    triple as subject are left out, and a quoted triple as object becomes an empty literal.
    """
    edges = []
    literals = []
    for quad in quads:
        subject = quad.subject
        tail = quad.object
        if not isinstance(subject, NamedNode | BlankNode):
            continue
        if isinstance(tail, NamedNode | BlankNode):
            edges.append((label(str(subject)), str(quad.predicate), label(str(tail))))
        else:
            value = str(tail) if isinstance(tail, Literal) else '""'
            literals.append((label(str(subject)), str(quad.predicate), value))
    return edges, literals


def reason(error: SyntaxError) -> str:
    """Return the message of the parser without the position."""
    message = error.msg or str(error)
    if "LoadDocumentCallback" in message:
        return (
            "the context is on the web and not loaded. Put its content into the file."
        )
    return (
        message.partition(": ")[2] if message.startswith("Parser error ") else message
    )


RDF_FORMATS = {
    one.name: RdfFormat.from_media_type(one.media_type)
    for one in INPUT_FORMATS
    if one.is_rdf
}
RESUMED = ("turtle", "nquads", "trig")
"""Formats in which the parser resumes after a statement that it cannot read."""

GRAPHS_FORMATS = ("nquads", "trig", "jsonld")
"""Formats with named graphs."""

MOST_NAMED = 5
"""Maximum number of named graphs that an error message lists."""

BLOCK_SIZE = 1 << 10
"""Statements that are held before their length is checked. Their names may be long."""


def read_rdf_file(
    path: Path,
    file_format: str,
    bad: BadLines,
    *,
    keep_literals: bool = False,
    earlier: TripleCollector[str] | None = None,
    named_graph: str | None = None,
) -> TripleCollector[str]:
    """Collect the triples of a file.

    Args:
        path: The file. A ``.gz`` file is decompressed while it is read.
        file_format: A format in ``RDF_FORMATS``.
        bad: Handles statements that cannot be read. Only in some formats reading can continue.
        keep_literals: Whether to keep all literals, not only labels.
        earlier: The triples of another file, to which those of this file are added.
        named_graph: The IRI of the only named graph to read; all graphs by default.

    Raises:
        DataError: The file cannot be read, or has no such named graph.
    """
    collector = earlier or TripleCollector(shown_name, literal_parts, keep_literals)
    prefix = "" if earlier is None else f"{path.name}/"

    def collect() -> None:
        labels = blank_node_labels(prefix)
        guard = rdf_guard(path, file_format)
        quads = statements(path, file_format, bad, guard)
        if named_graph is not None and file_format in GRAPHS_FORMATS:
            quads = of_graph(path, quads, named_graph)
        while block := list(islice(quads, BLOCK_SIZE)):
            edges, literals = sorted_out(block, labels)
            guard.check_expanded(chain(*edges, *literals))
            collector.add_rows(edges, literals)

    before = collector.mark()
    try:
        collect()
    except ImperfectRDFError:
        collector.return_to(before)
        collect()
    return collector


def rdf_guard(path: Path, file_format: str) -> Guard:
    """Return the checks of a file before the parser reads it."""
    if file_format in ("rdfxml", "jsonld"):
        return XMLGuard(path) if file_format == "rdfxml" else JSONGuard(path)
    return TurtleGuard(path, has_lines=file_format == "nquads")


def _is_fact(quad: Quad) -> bool:
    """Return whether a statement of N3 is not part of a formula or a rule."""
    is_rule = quad.predicate.value.startswith("http://www.w3.org/2000/10/swap/log#")
    return isinstance(quad.graph_name, DefaultGraph) and not is_rule


def of_graph(path: Path, quads: Iterable[Quad], name: str) -> Iterator[Quad]:
    """Yield the statements of a named graph.

    Raises:
        DataError: There are none.
    """
    num_found = 0
    others = set[str]()
    for quad in quads:
        found = shown_name(str(quad.graph_name))
        if found == name:
            num_found += 1
            yield quad
        elif len(others) < MOST_NAMED:
            others.add(found)
    if not num_found:
        raise DataError(
            f"{path.name} has no named graph {name}. It has {', '.join(sorted(others))}. Correct "
            "data.graph."
        )


class ImperfectRDFError(Exception):
    """Raised by a reader that checks everything. The same reader is then lenient."""


UNCLOSED = (
    "an IRI is not closed: it contains a line break, a quotation mark or a bracket"
)


def statements(
    path: Path, file_format: str, bad: BadLines, guard: Guard
) -> Iterator[Quad]:
    """Yield the statements of a file in its order.

    Raises:
        ImperfectRDFError: The file has a fault, which may be repaired. The caller forgets all
            statements, because blank nodes get other labels, and calls this function again.
        DataError: The file cannot be read.
    """
    # JSON-LD leaves out relative IRIs without an error
    is_lenient = bad.repairs.is_needed or file_format == "jsonld"
    if not is_lenient:
        yield from _strict_statements(path, file_format, bad, guard)
        return
    repairs = bad.repairs
    for quad in _lenient_statements(path, file_format, bad, guard):
        # JSON-LD leaves out keys that no context defines
        if file_format == "jsonld" and not HAS_SCHEME.match(quad.predicate.value):
            continue
        repaired = repairs.quad(quad)
        if repaired is not None:
            yield repaired
            continue
        # the place of the first fault is known
        is_first = not repairs.counts and not bad.num_lines
        place = repairs.first_place if is_first else None
        bad.add(None if place is None else place.line, UNCLOSED)


def _strict_statements(
    path: Path, file_format: str, bad: BadLines, guard: Guard
) -> Iterator[Quad]:
    """Yield the statements of a file without any fault."""
    base = bad.repairs.base if bad.repairs.has_own_base else None
    with byte_stream(path, has_lines=False, guard=guard) as stream:
        try:
            for quad in pyoxigraph.parse(
                stream, RDF_FORMATS[file_format], base_iri=base
            ):
                if file_format != "n3" or _is_fact(quad):
                    yield quad
        except SyntaxError as error:
            line = error.lineno or _line_of_error(
                path, file_format, base, is_lenient=False
            )
            bad.repairs.begin(line, error.offset)
            raise ImperfectRDFError from error


class _Lines:
    """A stream that gives a parser one line at a time, and counts them."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.number = 0

    def read(self, size: int = -1) -> bytes:
        line = self._stream.readline(size)
        self.number += line.endswith(b"\n")
        self.is_within = bool(line) and not line.endswith(b"\n")
        return line


def _line_of_error(
    path: Path, file_format: str, base: str | None, is_lenient: bool
) -> int:
    """Return the line of the first error of a parser that does not say where it is, as for XML."""
    with byte_stream(path, has_lines=False) as stream:
        lines = _Lines(stream)
        given: Any = lines
        parser = pyoxigraph.parse(
            given, RDF_FORMATS[file_format], base_iri=base, lenient=is_lenient
        )
        with suppress(SyntaxError):
            for _ in parser:
                pass
        return lines.number + lines.is_within


def _lenient_statements(
    path: Path, file_format: str, bad: BadLines, guard: Guard
) -> Iterator[Quad]:
    """Yield the statements that a parser can split into terms; the terms may be invalid."""
    # keys without a definition must stay apart from IRIs in JSON-LD
    base = None if file_format in ("nquads", "jsonld") else bad.repairs.base
    with byte_stream(path, has_lines=False, guard=guard) as stream:
        parser = pyoxigraph.parse(
            stream, RDF_FORMATS[file_format], base_iri=base, lenient=True
        )
        last_bad_line = 0
        while True:
            try:
                quad = next(parser)
                if file_format != "n3" or _is_fact(quad):
                    yield quad
            except StopIteration:
                return
            except SyntaxError as error:
                line = error.lineno or _line_of_error(
                    path, file_format, base, is_lenient=True
                )
                if file_format not in RESUMED:
                    raise DataError(
                        f"{path.name}, line {line}: {reason(error)}"
                    ) from error
                if (
                    line != last_bad_line
                ):  # the parser may report one mistake more than once
                    bad.add(line, reason(error))
                last_bad_line = line
