"""A limit on the nesting of quoted triples, which the RDF parser reads by recursion."""

import re
from pathlib import Path

from emea.data.formats.limits import current_limits, limit_error
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


class QuotedTripleGuard:
    """Limits the nesting of quoted triples in N-Triples and Turtle.

    Very deep nesting would exhaust the stack of the parser and end the process.

    Args:
        path: The file, for messages.
        has_lines: Whether each statement is one line, as in N-Triples. Turtle has strings of
            several lines.
    """

    def __init__(self, path: Path, has_lines: bool) -> None:
        self._path = path
        self._limits = current_limits()
        self._tokens = LINE_TOKENS if has_lines else TURTLE_TOKENS
        self._marks = (b"<<",) if has_lines else (b"<<", b'"""', b"'''")
        self._depth = 0
        self._rest = b""

    def check(self, block: bytes) -> None:
        """Check the next bytes of the file.

        Raises:
            DataError: Quoted triples are nested too deeply.
        """
        block = self._rest + block
        half = HALF_TOKEN.search(block, max(0, len(block) - MOST_QUOTED))
        self._rest = half[0] if half else b""
        block = block.removesuffix(self._rest)
        if not self._depth and not any(mark in block for mark in self._marks):
            block = block[block.rfind(b"\n") + 1 :]  # all other tokens end with their line
        for token in self._tokens.finditer(block):
            if token.lastgroup == "open":
                self._depth += 1
                self._check_depth()
            elif token.lastgroup == "close":
                self._depth = max(0, self._depth - 1)
            elif token.lastgroup == "end":
                self._depth = 0
            elif token.lastindex:
                self._rest = _shortened(token[0]) + self._rest

    def _check_depth(self) -> None:
        if self._depth > MOST_QUOTED:
            raise DataError(
                f"{self._path.name}: quoted triples are nested more than {MOST_QUOTED} levels "
                "deep, which is not supported. Remove these triples."
            )
        if self._depth > self._limits.depth:
            what = "the nesting depth of quoted triples"
            raise limit_error(self._path, what, "depth", self._limits)


def _shortened(token: bytes) -> bytes:
    """Return a short token that continues in the same way as one that a block cuts."""
    mark = token[:3] if token.startswith((b'"""', b"'''")) else token[:1]
    body = token[len(mark) :]
    backslashes = len(body) - len(body.rstrip(b"\\"))
    return mark + (b"x" if body else b"") + b"\\" * (backslashes % 2)
