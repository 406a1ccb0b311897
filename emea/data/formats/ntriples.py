"""Reads N-Triples, one statement a line.

Lines of three IRIs, nearly all of a large graph, are split and looked up without a parser. They
are recognised by a grammar narrower than that of IRIs, so that a line it accepts is one that the
parser accepts with the same result; every other line goes to the parser.
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyoxigraph
from pyoxigraph import Quad, RdfFormat

from emea.data.formats.files import BadLines, line_chunks
from emea.data.formats.rdf import columns, reason, shown_name, sorted_out
from emea.data.formats.triple_collector import TripleCollector

# Letters beyond ASCII: U+00C0 to U+07FF and U+1000 to U+CFFF, all allowed in an IRI.
_SAFE = rb"[A-Za-z0-9\-._~!$&'()*+,;=:@/?]*+"
_WIDE = rb"(?:%[0-9A-Fa-f]{2}|[\xc3-\xdf][\x80-\xbf]|[\xe1-\xec][\x80-\xbf]{2})"
_TEXT = _SAFE + rb"(?:" + _WIDE + _SAFE + rb")*+"
_WEB = rb"https?://[A-Za-z0-9.\-]++(?:[/?]" + _TEXT + rb")?(?:#" + _TEXT + rb")?"
_IRI = rb"<(?:" + _WEB + rb"|urn:[A-Za-z0-9]" + _TEXT + rb")>"
_LINE = rb"[ \t]++".join([_IRI, _IRI, _IRI, rb"\.\r?\n"])

is_plain_iri = re.compile(_IRI).fullmatch
PLAIN_RUN_OR_LINE = re.compile(rb"((?:" + _LINE + rb")++)|[^\n]*+\n")
# What is between the brackets is looked at later, once for each distinct IRI.
BRACKETED_LINES = re.compile(rb"(?:<[^>]*+> <[^>]*+> <[^>]*+> \.\n)*+")


class NumberedLine(NamedTuple):
    """A line and where it stands."""

    number: int
    text: bytes


class NTriplesCollector(TripleCollector[bytes]):
    """Looks terms up as they stand in the file: an IRI has its brackets."""

    def __init__(self) -> None:
        super().__init__(lambda key: shown_name(key.decode()))

    def add_if_plain(self, heads: list[bytes], relations: list[bytes], tails: list[bytes]) -> bool:
        """Take triples if all their terms are plain IRIs; whether they are.

        Terms are looked up once, then those that are new are looked at.
        """
        sizes = len(self.entities), len(self.relations)
        self.add(heads, relations, tails)
        new = chain(self.entities.since(sizes[0]), self.relations.since(sizes[1]))
        if all(map(is_plain_iri, new)):
            return True
        self.take_back(*sizes)
        return False


def read_ntriples(path: Path, bad: BadLines) -> NTriplesCollector:
    """The triples of a file.

    Args:
        path: the file, packed where its name ends in ``.gz``.
        bad: told of lines that cannot be read.
    """
    collector = NTriplesCollector()
    num_lines = 0
    for chunk in line_chunks(path):
        if not _take_plain(chunk, collector):
            _take_any(chunk, num_lines, collector, bad)
        num_lines += chunk.count(b"\n")
    return collector


def statements_of(relation: str, path: Path, bad: BadLines) -> Iterator[tuple[int, Quad]]:
    """Statements of one relation, with their lines."""
    wanted, num_lines = relation.encode(), 0
    for chunk in line_chunks(path):
        lines = chunk[:-1].split(b"\n")
        numbered = [NumberedLine(num_lines + at, text + b"\n") for at, text in enumerate(lines, 1)]
        num_lines += len(numbered)
        # only the wanted lines need to be told apart; the others must be readable, no more
        parse_lines([line for line in numbered if wanted not in line.text], bad)
        for line in numbered:
            if wanted in line.text:
                for quad in parse_lines([line], bad):
                    yield line.number, quad


def parse_lines(lines: list[NumberedLine], bad: BadLines) -> list[Quad]:
    """The statements of some lines; those of a line that cannot be read are left out."""
    try:
        return _parsed(b"".join(line.text for line in lines))
    except SyntaxError as error:
        if len(lines) == 1:
            bad.add(lines[0].number, reason(error))
            return []
    # one after the other, so that no line hides another
    return [quad for line in lines for quad in parse_lines([line], bad)]


def _parsed(text: bytes) -> list[Quad]:
    return list(pyoxigraph.parse(text, RdfFormat.N_TRIPLES))


def _take_plain(chunk: bytes, collector: NTriplesCollector) -> bool:
    """Take lines of three IRIs; whether the chunk has no other lines.

    The lines' form is checked first. Then all terms must be plain IRIs: a bracket inside which
    there is a blank falls apart into pieces that are none.
    """
    if not BRACKETED_LINES.fullmatch(chunk):
        return False
    heads, relations, tails, dots = _split(chunk)
    if not len(heads) == len(relations) == len(tails) == dots.count(b"."):
        return False
    return collector.add_if_plain(heads, relations, tails)


def _take_any(chunk: bytes, num_before: int, collector: NTriplesCollector, bad: BadLines) -> None:
    """Take lines of any kind."""
    runs: list[bytes] = []
    others: list[NumberedLine] = []
    number = num_before + 1
    for match in PLAIN_RUN_OR_LINE.finditer(chunk):
        text = match.group()
        if match.lastindex:
            runs.append(text)
            number += text.count(b"\n")
        else:
            others.append(NumberedLine(number, text))
            number += 1
    heads, relations, tails, _ = _split(b"".join(runs))
    collector.add(heads, relations, tails)
    edges, described = sorted_out(parse_lines(others, bad), str)
    heads, relations, tails = ([term.encode() for term in terms] for terms in columns(edges))
    collector.add(heads, relations, tails)
    collector.add_literals([term.encode() for term in described])


def _split(text: bytes) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes]]:
    words = text.split()
    return words[::4], words[1::4], words[2::4], words[3::4]
