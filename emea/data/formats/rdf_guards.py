"""Checks RDF before the native parser reads it: nesting, XML entities and long prefixes."""

import json
import re
from pathlib import Path
from xml.parsers.expat import ExpatError, ParserCreate

from emea.data.formats.jsonld_contexts import CONTEXT, Contexts
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


class JSONGuard(Guard):
    """Limits the nesting of objects and lists in JSON-LD, the length of IRIs, and contexts.

    Args:
        path: The file, for messages.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._depth = 0
        self._rest = b""
        self._key = b""
        self._contexts = Contexts(path)

    def check(self, block: bytes) -> None:
        """Check that the next bytes are not nested too deeply."""
        super().check(block)
        block, self._rest = self._rest + block, b""
        for token in JSON_TOKENS.finditer(block):
            text, colon, at_end, cut, opened, closed = token.groups()
            if cut is not None:  # the string continues in the next block
                self._rest = b'"' + _end_of(text or b"", 2 * self.limits.iri_length)
                self._rest += cut
            elif at_end is not None:  # the next block says whether it is a key
                self._rest = token[0]
            elif text is not None:
                self._check_text(_unescaped(text), is_key=colon is not None)
            self._check_bracket(opened, closed)

    def _check_text(self, text: bytes, is_key: bool) -> None:
        if b":" in text and b" " not in text:
            self.check_iri(len(text))
        if is_key:
            self._key = text
            self._contexts.key(text, self._depth, self._num_bytes)
        else:
            self._contexts.value(self._key, text, self._depth, self._num_bytes)
            self._key = b""

    def _check_bracket(self, opened: bytes | None, closed: bytes | None) -> None:
        if opened is not None:
            if self._key == CONTEXT:
                self._contexts.open(self._depth, is_list=opened == b"[")
            self._key = b""
        self._depth += (opened is not None) - (closed is not None)
        if closed is not None:
            self._contexts.close(self._depth, self._num_bytes)
        if self._depth > self.limits.depth:
            raise limit_error(
                self.path, "the nesting depth of JSON", "depth", self.limits
            )


def _unescaped(text: bytes) -> bytes:
    """Return the text that a string of JSON means: its characters may be written as escapes."""
    if b"\\" not in text:
        return text
    try:
        found: str = json.loads(b'"' + text + b'"', strict=False)
    except ValueError:  # the parser reports it
        return text
    return found.encode(errors="surrogatepass")


def _end_of(text: bytes, length: int) -> bytes:
    """Return the end of a text, which does not begin within an escape."""
    end = text[-length:]
    before = text[: -len(end)] if end else b""
    is_cut = (len(before) - len(before.rstrip(b"\\"))) % 2
    return end[1:] if is_cut else end


MOST_ATTRIBUTES = 2000
"""Attributes of an element, and namespaces that it may use. The parser compares all of them with
each other."""


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
        self._declared = [0]  # the number of namespaces in scope, for each open element
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
        num_declared = self._declared[-1]
        for name, value in attributes.items():
            if name.startswith("xml"):  # xmlns, xmlns:prefix or xml:base
                self.check_iri(len(value))
                num_declared += 1
        if max(len(attributes), num_declared) > MOST_ATTRIBUTES:
            raise DataError(
                f"{self.path.name}, line {self._parser.CurrentLineNumber}: an element has more "
                f"than {MOST_ATTRIBUTES:,} attributes or namespaces, which is not supported. Write "
                "them as elements."
            )
        self._declared.append(num_declared)
        self._depth += 1
        if self._depth > self.limits.depth:
            raise limit_error(
                self.path, "the nesting depth of elements", "depth", self.limits
            )

    def _close(self, *_: object) -> None:
        self._declared.pop()
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
