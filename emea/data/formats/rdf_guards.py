"""Checks RDF before the native parser reads it: nesting, XML entities and long prefixes."""

import re
from pathlib import Path
from xml.parsers.expat import ExpatError, ParserCreate

from emea.data.formats.limits import Guard, limit_error
from emea.errors import DataError

MOST_QUOTED = 1000
"""Nesting depth of quoted triples that the parser can always read. It fails above 10,000."""

# Strings, IRIs, comments and escapes, in which brackets have no meaning. An empty group marks a
# token that the end of a block cuts.
LONG_STRINGS = (
    rb'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|(\\?\Z))'
    rb"|'''(?:[^'\\]++|\\.|'(?!''))*+(?:'''|(\\?\Z))|"
)
SHORT_TOKENS = (
    rb'"(?:[^"\\\n]++|\\[^\n])*+(?:"|(\\?\Z))'
    rb"|'(?:[^'\\\n]++|\\[^\n])*+(?:'|(\\?\Z))"
    rb"|<[^<>\s]*+(?:>|(\Z))"
    rb"|\#[^\n]*+(?:(?=\n)|(\Z))"
    rb"|\\(?:[^\n]|(\Z))"
)
BRACKETS = rb"|(?P<open><<)|(?P<close>>>)"
LINE_TOKENS = re.compile(SHORT_TOKENS + BRACKETS + rb"|(?P<end>\n)")
TURTLE_TOKENS = re.compile(
    LONG_STRINGS + SHORT_TOKENS + BRACKETS + rb"|(?P<end>\.[ \t\r]*+\n)", re.DOTALL
)
# the next block decides what these bytes mean
HALF_TOKEN = re.compile(rb"(?:<|>++|\"++|'++)\Z")

LONG_IRI = rb"<([^\x00-\x20<>\"{}|^`]{%d})"


class TurtleGuard(Guard):
    """Limits the nesting of quoted triples in N-Triples and Turtle, and the length of prefixes.

    Very deep nesting would exhaust the stack of the parser and end the process.

    Args:
        path: The file, for messages.
        has_lines: Whether each statement is one line, as in N-Triples. Turtle has strings of
            several lines.
    """

    def __init__(self, path: Path, has_lines: bool) -> None:
        super().__init__(path)
        self._tokens = LINE_TOKENS if has_lines else TURTLE_TOKENS
        self._marks = (b"<<",) if has_lines else (b"<<", b'"""', b"'''")
        self._depth = 0
        self._rest = b""
        self._end = b""
        # N-Triples have no prefixes, so that long IRIs do no harm
        most = self.limits.iri_length
        self._long_iri = None if has_lines else re.compile(LONG_IRI % (most + 1))

    def check(self, block: bytes) -> None:
        """Check that quoted triples are not nested too deeply, and that no prefix is too long."""
        super().check(block)
        if self._long_iri is not None:
            self._check_iris(block)
        block = self._rest + block
        half = HALF_TOKEN.search(block, max(0, len(block) - MOST_QUOTED))
        self._rest = half[0] if half else b""
        block = block.removesuffix(self._rest)
        if not self._depth and not any(mark in block for mark in self._marks):
            block = block[
                block.rfind(b"\n") + 1 :
            ]  # all other tokens end with their line
        for token in self._tokens.finditer(block):
            if token.lastgroup == "open":
                self._depth += 1
                if self._depth > MOST_QUOTED:
                    raise DataError(
                        f"{self.path.name}: quoted triples are nested more than {MOST_QUOTED} "
                        "levels deep, which is not supported. Remove these triples."
                    )
                if self._depth > self.limits.depth:
                    what = "the nesting depth of quoted triples"
                    raise limit_error(self.path, what, "depth", self.limits)
            elif token.lastgroup == "close":
                self._depth = max(0, self._depth - 1)
            elif token.lastgroup == "end":
                self._depth = 0
            elif token.lastindex:
                self._rest = _shortened(token[0]) + self._rest

    def _check_iris(self, block: bytes) -> None:
        # an IRI may begin in one block and continue in the next
        text = self._end + block
        if self._long_iri is not None and (found := self._long_iri.search(text)):
            self.check_iri(len(found[1]))
        begun = text[text.rfind(b"<") :]
        self._end = begun if len(begun) <= self.limits.iri_length + 1 else b""


def _shortened(token: bytes) -> bytes:
    """Return a short token that continues in the same way as one that a block cuts."""
    mark = token[:3] if token.startswith((b'"""', b"'''")) else token[:1]
    body = token[len(mark) :]
    backslashes = len(body) - len(body.rstrip(b"\\"))
    return mark + (b"x" if body else b"") + b"\\" * (backslashes % 2)


JSON_TOKENS = re.compile(
    rb'"((?:[^"\\]++|\\.)*+)(?:"(?:\s*+(?:(:)|(?=[^\s:])|(\Z)))|(\\?\Z))|([\[{])|([\]}])',
    re.DOTALL,
)
"""A string, with the colon behind it if it is a key; a string that the end of a block cuts or
follows; and brackets."""

CONTEXT = b"@context"
LEAST_TERMS, TERMS_PER_BYTE = 4_000_000, 5
"""Terms that all contexts may copy, at least, and for each byte of the file. A context in an object
copies all terms of the contexts around it."""

LEAST_EXPANDED, EXPANDED_PER_BYTE = 1 << 24, 10
"""Length that the definitions of all contexts may have in full, at least, and for each byte."""


class JSONGuard(Guard):
    """Limits the nesting of objects and lists in JSON-LD, the length of IRIs, and contexts.

    A term of a context may begin with another term, whose definition begins with a third one. The
    parser resolves such a chain recursively, so that a long one ends the process.

    Args:
        path: The file, for messages.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._depth = 0
        self._rest = b""
        self._key = b""
        self._contexts = _Contexts(self)

    def check(self, block: bytes) -> None:
        """Check that the next bytes are not nested too deeply."""
        super().check(block)
        block, self._rest = self._rest + block, b""
        for token in JSON_TOKENS.finditer(block):
            text, colon, at_end, cut, opened, closed = token.groups()
            if cut is not None:  # the string continues in the next block
                self._rest = b'"' + (text or b"")[-2 * self.limits.iri_length :] + cut
            elif at_end is not None:  # the next block says whether it is a key
                self._rest = token[0]
            elif text is not None:
                self._check_text(text, is_key=colon is not None)
            self._check_bracket(opened, closed)

    def _check_text(self, text: bytes, is_key: bool) -> None:
        if b":" in text and b" " not in text:
            self.check_iri(len(text))
        if is_key:
            self._key = text
            self._contexts.key(text, self._depth)
        else:
            self._contexts.value(self._key, text, self._depth)
            self._key = b""

    def _check_bracket(self, opened: bytes | None, closed: bytes | None) -> None:
        if opened is not None:
            if self._key == CONTEXT:
                self._contexts.open(self._depth)
            self._key = b""
        self._depth += (opened is not None) - (closed is not None)
        if closed is not None:
            self._contexts.close(self._depth)
        if self._depth > self.limits.depth:
            raise limit_error(
                self.path, "the nesting depth of JSON", "depth", self.limits
            )

    @property
    def num_bytes(self) -> int:
        """The number of bytes so far."""
        return self._num_bytes


class _Contexts:
    """Follows the contexts of a file while it is read, and limits what they expand to.

    Args:
        guard: The checks of the file.
    """

    def __init__(self, guard: JSONGuard) -> None:
        self._guard = guard
        self._start: int | None = (
            None  # the depth around the context that is being read
        )
        self._term = b""
        self._own: dict[bytes, bytes] = {}
        self._lengths: dict[bytes, int] = {}
        self._num_copied = self._num_expanded = 0

    def open(self, depth: int) -> None:
        """Begin a context."""
        if self._start is None:
            self._start = depth
            self._own = {}

    def key(self, text: bytes, depth: int) -> None:
        """Note the term that a key of a context defines, unless it is a keyword."""
        if self._start is not None and not text.startswith(b"@"):
            self._term = text

    def value(self, key: bytes, text: bytes, depth: int) -> None:
        """Note the definition of a term."""
        if self._start is not None and key in (self._term, b"@id") and self._term:
            self._own[self._term] = text

    def close(self, depth: int) -> None:
        """End a context at this depth, and check it."""
        if self._start is None or depth > self._start:
            return
        self._start = None
        self._term = b""
        for term in self._own:
            self._resolve(term)
        self._num_copied += len(self._lengths)
        size = self._guard.num_bytes
        if self._num_copied > max(
            LEAST_TERMS, TERMS_PER_BYTE * size
        ) or self._num_expanded > max(LEAST_EXPANDED, EXPANDED_PER_BYTE * size):
            raise DataError(
                f"{self._guard.path.name}: its contexts expand to far more than the file contains. "
                "Define each term once, in one context at the beginning, without long prefixes."
            )

    def _resolve(self, term: bytes) -> None:
        """Compute the length of the definition of a term in full."""
        chain = [term]
        known = set(chain)
        while True:
            prefix = self._own[chain[-1]].partition(b":")[0]
            if prefix not in self._own or prefix in known:
                break
            chain.append(prefix)
            known.add(prefix)
            if len(chain) > self._guard.limits.depth:
                what = "the number of prefixes that are defined by each other"
                raise limit_error(self._guard.path, what, "depth", self._guard.limits)
        prefix, _, rest = self._own[chain[-1]].partition(b":")
        length = self._lengths.get(prefix, len(prefix)) + len(rest)
        length += sum(len(self._own[one].partition(b":")[2]) for one in chain[:-1])
        self._lengths[term] = length
        self._num_expanded += length


class XMLGuard(Guard):
    """Checks XML before another parser reads it: nesting depth, entity definitions and namespaces.

    An entity that refers to other entities can expand to a text of any size, and so can a long
    entity that is used often. Only short definitions without references are accepted, such as the
    abbreviations of namespaces in OWL files.

    Args:
        path: The file, for messages.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._depth = 0
        self._is_finished = False
        self._parser = ParserCreate()
        self._parser.StartElementHandler = self._open
        self._parser.EndElementHandler = self._close
        self._parser.EntityDeclHandler = self._define

    def check(self, block: bytes) -> None:
        """Check that the next bytes are well-formed XML within the limits."""
        super().check(block)
        if self._is_finished:
            return
        self._is_finished = not block
        try:
            self._parser.Parse(block, self._is_finished)
        except (
            LookupError,
            ValueError,
        ) as error:  # an encoding that the parser does not know
            raise DataError(
                f"{self.path.name}: {error}. Save the file as UTF-8."
            ) from error
        except ExpatError as error:
            message = str(error).partition(": line")[0]
            raise DataError(
                f"{self.path.name}, line {error.lineno}: the XML is not well-formed: {message}"
            ) from error

    def _open(self, _: str, attributes: dict[str, str]) -> None:
        for name, value in attributes.items():
            if name.startswith("xml"):  # xmlns, xmlns:prefix or xml:base
                self.check_iri(len(value))
        self._depth += 1
        if self._depth > self.limits.depth:
            raise limit_error(
                self.path, "the nesting depth of elements", "depth", self.limits
            )

    def _close(self, *_: object) -> None:
        self._depth -= 1

    def _define(
        self, name: str, is_parameter: bool, value: str | None, *external: object
    ) -> None:
        if is_parameter or value is None or "&" in value or "%" in value:
            raise DataError(
                f"{self.path.name}, line {self._parser.CurrentLineNumber}: the definition of "
                f"entity {name} refers to other entities or files, which is not supported. Replace "
                "the entity with its text."
            )
        if len(value) > self.limits.entity_length:
            raise limit_error(
                self.path, f"the length of entity {name}", "entity_length", self.limits
            )
