"""Reads N-Triples, which have one statement on each line.

Lines with three IRIs, and lines with two IRIs and a simple literal, are split without a parser.
Regular expressions recognise them. These accept less than N-Triples allows, and the parser would
accept the same lines with the same result. The parser reads all other lines.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import pyoxigraph
from pyoxigraph import Quad, RdfFormat

from emea.data.attributes import literal_parts
from emea.data.formats.input_file import CHUNK_SIZE, BadLines, byte_stream
from emea.data.formats.rdf import reason, shown_name, sorted_out
from emea.data.formats.rdf_guards import TurtleGuard
from emea.data.formats.repairs import Place
from emea.data.formats.triple_collector import TripleCollector

# Characters outside ASCII: U+00C0 to U+07FF and U+1000 to U+CFFF, which an IRI may contain.
_SAFE = rb"[A-Za-z0-9\-._~!$&'()*+,;=:@/?]*+"
_WIDE = rb"(?:%[0-9A-Fa-f]{2}|[\xc3-\xdf][\x80-\xbf]|[\xe1-\xec][\x80-\xbf]{2})"
_TEXT = _SAFE + rb"(?:" + _WIDE + _SAFE + rb")*+"
_WEB = rb"https?://[A-Za-z0-9.\-]++(?:[/?]" + _TEXT + rb")?(?:#" + _TEXT + rb")?"
_IRI = rb"<(?:" + _WEB + rb"|urn:[A-Za-z0-9]" + _TEXT + rb")>"
_LINE = rb"[ \t]++".join([_IRI, _IRI, _IRI, rb"\.\r?\n"])
# No escapes. The parser rewrites longer language tags and xsd:string, so it reads those lines.
_TYPE = rb"\^\^<http://www\.w3\.org/2001/XMLSchema#(?!string>)[A-Za-z]++>"
_LITERAL = rb'"[^"\\\r\n]*+"(?:@[a-z]{2,3}(?![A-Za-z0-9-])|' + _TYPE + rb")?"
_LITERAL_LINE = rb"[ \t]++".join([_IRI, _IRI, _LITERAL, rb"\.\r?\n"])
LITERAL_LINE_PARTS = re.compile(
    rb"(<[^>]*+>)[ \t]++(<[^>]*+>)[ \t]++(" + _LITERAL + rb")[ \t]++\.\r?\n"
)

is_plain_iri = re.compile(_IRI).fullmatch
RUN_OR_LINE = re.compile(
    rb"((?:"
    + _LINE
    + rb")++)|((?:"
    + _LITERAL_LINE
    + rb")++)|((?:[ \t\r]*+\n)++)|[^\n]*+\n"
)
# The text between the brackets is checked later, once for each distinct IRI.
BRACKETED_LINES = re.compile(rb"(?:<[^>]*+> <[^>]*+> <[^>]*+> \.\n)*+")


NumberedLine = tuple[int, bytes]
"""The number of a line in its file, and its text."""


class NTriplesCollector(TripleCollector[bytes]):
    """Collects triples whose terms are bytes in N-Triples syntax, IRIs with their brackets.

    Args:
        keep_literals: Whether to keep all literals, not only labels.
    """

    def __init__(self, keep_literals: bool = False) -> None:
        super().__init__(
            lambda key: shown_name(key.decode()),
            lambda key: literal_parts(key.decode()),
            keep_literals,
        )

    def add_if_plain(
        self, heads: list[bytes], relations: list[bytes], tails: list[bytes]
    ) -> bool:
        """Add triples if all their terms are plain IRIs, and return whether they are.

        All terms are looked up first. Then only terms that were new are checked.
        """
        sizes = len(self.entities), len(self.relations)
        self.add(heads, relations, tails)
        new = chain(self.entities.since(sizes[0]), self.relations.since(sizes[1]))
        if all(map(is_plain_iri, new)):
            return True
        self.take_back(*sizes)
        return False


def read_ntriples(
    path: Path, bad: BadLines, keep_literals: bool = False
) -> NTriplesCollector:
    """Collect the triples of a file.

    Args:
        path: The file. A ``.gz`` file is decompressed while it is read.
        bad: Handles lines that cannot be read.
        keep_literals: Whether to keep all literals, not only labels.
    """
    collector = NTriplesCollector(keep_literals)
    num_lines = 0
    for chunk in line_chunks(path):
        if not _take_plain(chunk, collector):
            _take_any(chunk, num_lines, collector, bad)
        num_lines += chunk.count(b"\n")
    return collector


def line_chunks(path: Path, size: int = CHUNK_SIZE) -> Iterator[bytes]:
    """Yield whole lines of N-Triples, many at once. The last line always ends with a newline."""
    with byte_stream(path, guard=TurtleGuard(path, has_lines=True)) as stream:
        rest = b""
        while block := stream.read(size):
            block = rest + block
            cut = block.rfind(b"\n") + 1
            rest = block[cut:]
            if cut:
                yield block[:cut]
        if rest:
            yield rest + b"\n"


def statements_of(
    relations: Sequence[str], path: Path, bad: BadLines
) -> Iterator[tuple[int, Quad]]:
    """Yield the statements that contain one of the relations, with their line numbers."""
    wanted = re.compile(b"|".join(re.escape(one.encode()) for one in relations))
    num_lines = 0
    for chunk in line_chunks(path):
        lines = chunk[:-1].split(b"\n")
        numbered = [(num_lines + at, text + b"\n") for at, text in enumerate(lines, 1)]
        num_lines += len(numbered)
        # only the wanted lines need a number; the others must only be readable
        parse_lines([line for line in numbered if not wanted.search(line[1])], bad)
        for line in numbered:
            if wanted.search(line[1]):
                for quad in parse_lines([line], bad):
                    yield line[0], quad


def parse_lines(lines: list[NumberedLine], bad: BadLines) -> list[Quad]:
    """Return the statements of some lines, without lines that cannot be read."""
    try:
        text = b"".join(text for _, text in lines)
        return list(pyoxigraph.parse(text, RdfFormat.N_TRIPLES))
    except SyntaxError as error:
        if len(lines) == 1:
            return _repaired(*lines[0], error, bad)
    # parse each line separately to report all bad lines
    return [quad for line in lines for quad in parse_lines([line], bad)]


def _repaired(line: int, text: bytes, error: SyntaxError, bad: BadLines) -> list[Quad]:
    """Return the statement of a line that breaks a rule, if its terms can be used all the same."""
    with suppress(SyntaxError):
        quads = list(pyoxigraph.parse(text, RdfFormat.N_TRIPLES, lenient=True))
        repaired = [bad.repairs.quad(quad) for quad in quads]
        if None not in repaired:
            if bad.repairs.first_place is None:
                bad.repairs.first_place = Place(line, error.offset)
            return [quad for quad in repaired if quad is not None]
    bad.add(line, reason(error))
    return []


def _take_plain(chunk: bytes, collector: NTriplesCollector) -> bool:
    """Add a chunk if all its lines consist of three IRIs, and return whether they do.

    The form of the lines is checked first, then that all terms are plain IRIs. Text in brackets
    that contains a space is split into pieces that are not plain IRIs.
    """
    if not BRACKETED_LINES.fullmatch(chunk):
        return False
    heads, relations, tails, dots = _split(chunk)
    if not len(heads) == len(relations) == len(tails) == dots.count(b"."):
        return False
    return collector.add_if_plain(heads, relations, tails)


def _take_any(
    chunk: bytes, num_before: int, collector: NTriplesCollector, bad: BadLines
) -> None:
    """Add the lines of a chunk, of any form."""
    runs: list[bytes] = []
    literal_runs: list[bytes] = []
    others: list[NumberedLine] = []
    number = num_before + 1
    is_text = False
    with suppress(UnicodeDecodeError):
        is_text = chunk.decode() != ""
    for match in RUN_OR_LINE.finditer(chunk):
        text = match.group()
        if match.lastindex == 3:  # blank lines
            number += text.count(b"\n")
            continue
        if match.lastindex == 1 or (match.lastindex == 2 and is_text):
            (runs if match.lastindex == 1 else literal_runs).append(text)
            number += text.count(b"\n")
            continue
        for line in text.splitlines(keepends=True) if match.lastindex else [text]:
            others.append((number, line))
            number += 1
    heads, relations, tails, _ = _split(b"".join(runs))
    collector.add(heads, relations, tails)
    found = LITERAL_LINE_PARTS.findall(b"".join(literal_runs))
    if found:
        collector.add_literals(*(list(column) for column in zip(*found, strict=True)))
    collector.add_rows(
        *(
            [
                (head.encode(), relation.encode(), tail.encode())
                for head, relation, tail in rows
            ]
            for rows in sorted_out(parse_lines(others, bad), str)
        )
    )


def _split(text: bytes) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes]]:
    words = text.split()
    return words[::4], words[1::4], words[2::4], words[3::4]
