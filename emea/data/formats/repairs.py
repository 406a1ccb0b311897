"""Reads RDF in spite of small faults: relative IRIs, wrong language tags and odd characters.

A parser that checks everything reads a file first. If it finds a fault, a lenient one reads the
file from its beginning, and each of its terms is checked here. The faults are counted, and one
warning names the first one.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import quote, urljoin

from pyoxigraph import Literal, NamedNode, Quad

from emea.data.formats.limits import explained_failures
from emea.errors import one_line

log = logging.getLogger(__name__)

Opened = Callable[[Path], AbstractContextManager[IO[bytes]]]
"""Opens a file, decompressed and within the limits."""

DEFAULT_BASE = "http://relative.invalid/"
"""What relative IRIs are resolved against if nothing else is known. No web site can have this name,
and it does not depend on the place of the file, so the same file always gives the same names."""

HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
HIERARCHICAL = re.compile(r"(?:https?|ftp|file)://")

UNUSABLE = re.compile(r'[\x00-\x1f<>"]')
"""Characters that show that an IRI is not closed. Such a statement cannot be read."""

STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
"""A percent sign that does not begin an encoded character."""

IRI_MARKS = "/:?#@!$&'()*+,;=%~"

RELATIVE = "relative IRIs"
LANGUAGE = "wrong language tags"
ODD = "IRIs with characters that an IRI may not contain"

DETAILS = {
    RELATIVE: "{num} relative IRIs (resolved against {base}; data.base_iri sets another base)",
    LANGUAGE: "{num} wrong language tags (left out)",
    ODD: "{num} IRIs with characters that an IRI may not contain (kept)",
}
SINGULAR = {
    RELATIVE: "1 relative IRI (resolved against {base}; data.base_iri sets another base)",
    LANGUAGE: "1 wrong language tag (left out)",
    ODD: "1 IRI with characters that an IRI may not contain (kept)",
}


class Place(NamedTuple):
    """Where the parser found a fault. The column is unknown if it is ``None``."""

    line: int
    column: int | None = None

    def __str__(self) -> str:
        """Return the place for messages."""
        column = "" if self.column is None else f", column {self.column}"
        return f"line {self.line}{column}"


class Repairs:
    """Repairs the terms of statements, and counts what was repaired.

    Args:
        label: The name of the file, for messages.
        base: What relative IRIs are resolved against.

    Attributes:
        has_own_base: Whether the user gave the base, so that relative IRIs are not faults.
        is_needed: Whether the file has a fault, so that a lenient parser reads it.
        first_place: Where the strict parser found the first fault.
    """

    def __init__(self, label: str, base: str | None = None) -> None:
        self.label = label
        self.base = base or DEFAULT_BASE
        self.has_own_base = base is not None
        self.is_needed = False
        self.first_place: Place | None = None
        self.counts: Counter[str] = Counter()
        self._first: str | None = None
        self._nodes: dict[str, tuple[NamedNode | None, str | None]] = {}
        self._wrong_tags: dict[str, bool] = {}

    def begin(self, line: int, column: int | None) -> None:
        """Note where the strict parser found the first fault. The file is read again."""
        self.is_needed = True
        self.first_place = Place(line, column)

    def quad(self, quad: Quad) -> Quad | None:
        """Return a statement with repaired terms, or ``None`` if one of them cannot be used."""
        faults: list[tuple[str, str]] = []
        terms: list[Any] = [
            self._term(term, faults)
            for term in (quad.subject, quad.predicate, quad.object, quad.graph_name)
        ]
        if any(term is None for term in terms):
            return None
        if not faults:
            return quad
        for kind, text in faults:
            self.counts[kind] += 1
            if self._first is None:
                self._first = text
        return Quad(*terms)

    def _term(self, term: Any, faults: list[tuple[str, str]]) -> Any:
        if isinstance(term, NamedNode):
            node, fault = self._node(term)
            if fault is not None:
                # the parser may have resolved it already
                faults.append((fault, term.value.removeprefix(DEFAULT_BASE)))
            return node
        if isinstance(term, Literal):
            return self._literal(term, faults)
        # blank nodes have no faults, and statements about statements are left out later
        return term

    def _literal(self, term: Literal, faults: list[tuple[str, str]]) -> Literal | None:
        if term.language is None:
            # the datatype is an IRI as any other
            datatype = self._term(term.datatype, faults)
            if datatype is None or datatype == term.datatype:
                return None if datatype is None else term
            return Literal(term.value, datatype=datatype)
        if self._is_wrong_tag(term.language):
            faults.append((LANGUAGE, term.language))
            return Literal(term.value)
        return term

    def _node(self, node: NamedNode) -> tuple[NamedNode | None, str | None]:
        """Return the repaired IRI and its fault. Most IRIs occur often, so answers are kept."""
        name = node.value
        if name not in self._nodes:
            self._nodes[name] = self._checked(node)
        return self._nodes[name]

    def _checked(self, node: NamedNode) -> tuple[NamedNode | None, str | None]:
        name = node.value
        if UNUSABLE.search(name):
            return None, None
        if not HAS_SCHEME.match(name):
            return NamedNode(resolved(self.base, name)), RELATIVE
        if name.startswith(DEFAULT_BASE) and not self.has_own_base:
            return NamedNode(
                resolved(self.base, name.removeprefix(self.base))
            ), RELATIVE
        try:
            NamedNode(name)
        except ValueError:
            return node, ODD
        return node, None

    def _is_wrong_tag(self, tag: str) -> bool:
        if tag not in self._wrong_tags:
            try:
                Literal("", language=tag)
                self._wrong_tags[tag] = False
            except ValueError:
                self._wrong_tags[tag] = True
        return self._wrong_tags[tag]

    def log(self, path: Path | None, opened: Opened) -> None:
        """Log one warning with the number of faults of each kind and the first one.

        Args:
            path: The file, in which the first fault is looked up if its line is not known.
            opened: Opens the file as a stream of bytes.
        """
        if not self.counts:
            return
        parts = [
            (SINGULAR if num == 1 else DETAILS)[kind].format(
                num=f"{num:,}", base=self.base
            )
            for kind, num in self.counts.items()
        ]
        first = one_line(self._first or "")
        place = self.first_place
        if place is None and path is not None:
            place = found_place(path, self._first or "", opened)
        where = "" if place is None else f" in {place}"
        log.warning(
            "%s was read with repairs: %s. The first is %r%s.",
            self.label,
            " and ".join(parts),
            first,
            where,
        )


def resolved(base: str, name: str) -> str:
    """Return a relative IRI in full."""
    full = urljoin(base, name) if HIERARCHICAL.match(base) else base + name
    try:
        return NamedNode(full).value
    except ValueError:
        encoded = STRAY_PERCENT.sub("%25", full)
        return quote(encoded, safe=IRI_MARKS)


def found_place(path: Path, text: str, opened: Opened) -> Place | None:
    """Return where a file first contains an IRI in brackets or quotes, or a language tag.

    Args:
        path: The file.
        text: The IRI or the tag.
        opened: Opens the file as a stream of bytes.
    """
    wanted = re.escape(text.removeprefix("#").encode())
    pattern = re.compile(rb"[<\"'@#]" + wanted + rb"(?=[>\"'\s;,.)\]]|$)")
    with explained_failures(path), opened(path) as stream:
        for number, line in enumerate(stream, 1):
            if (found := pattern.search(line)) is not None:
                return Place(number, found.start() + 1)
    return None
