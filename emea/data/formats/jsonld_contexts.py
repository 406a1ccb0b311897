"""Limits what the contexts of JSON-LD expand to, before the native parser reads them."""

from dataclasses import dataclass, field
from pathlib import Path

from emea.data.formats.limits import current_limits, limit_error
from emea.errors import DataError

CONTEXT = b"@context"
DEFINING = (b"@id", b"@reverse", b"@type", b"@index")
"""Keys of the definition of a term whose values may begin with another term."""

LEAST_TERMS, TERMS_PER_BYTE = 4_000_000, 5
"""Terms that all contexts may copy, at least, and for each byte of the file. A context in an object
copies all terms of the contexts around it, and so does each use of a term with its own context."""

LEAST_EXPANDED, EXPANDED_PER_BYTE = 1 << 24, 10
"""Length that the definitions of all contexts may have in full, at least, and for each byte."""


@dataclass
class _Context:
    """A context that is being read.

    Args:
        start: The nesting depth around it.
        level: The nesting depth of the keys that are its terms.
        term: The last of its terms.
        values: What each term is defined by.
    """

    start: int
    level: int
    term: bytes = b""
    values: dict[bytes, list[bytes]] = field(default_factory=dict)

    def needs(self, term: bytes) -> list[tuple[bytes, int]]:
        """Return the terms that a term is resolved with, and the lengths of what follows them.

        A value names another term, or begins with one as its prefix. So does a term with a colon.
        """
        found = []
        for text in (*self.values[term], term):
            prefix, _, rest = text.partition(b":")
            if text != term and text in self.values:
                found.append((text, 0))
            elif prefix != text and prefix != term and not rest.startswith(b"//"):
                found.append((prefix, len(rest)))
        return found


class Contexts:
    """Follows the contexts of a file while it is read, and limits what they expand to.

    The parser resolves terms that are defined by each other recursively, so that a long chain ends
    the process. All texts are compared without escapes.

    Args:
        path: The file, for messages.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._limits = current_limits()
        self._open: list[_Context] = []  # a term of a context may have its own context
        self._scoped: set[bytes] = set()
        self._lengths: dict[bytes, int] = {}
        self._vocabulary = self._num_copied = self._num_expanded = 0

    def open(self, depth: int, is_list: bool) -> None:
        """Begin a context, or a list of them, at a nesting depth."""
        if self._open:
            self._scoped.add(self._open[-1].term)
        self._open.append(_Context(depth, depth + (2 if is_list else 1)))

    def key(self, text: bytes, depth: int, num_bytes: int) -> None:
        """Note the term that a key of a context defines, or the use of a term with a context."""
        if not self._open:
            self._use(text, num_bytes)
            return
        context = self._open[-1]
        if depth != context.level:
            return
        context.term = text
        if not text.startswith(b"@"):
            context.values.setdefault(text, [])

    def value(self, key: bytes, text: bytes, depth: int, num_bytes: int) -> None:
        """Note the definition of a term, or the use of a type with a context."""
        if not self._open:
            self._use(text, num_bytes)
            return
        context = self._open[-1]
        if key == b"@vocab" and depth == context.level:
            self._vocabulary = max(self._vocabulary, len(text))
        is_whole = key == context.term and depth == context.level
        values = context.values.get(context.term)
        if values is not None and (is_whole or key in DEFINING):
            values.append(text)

    def close(self, depth: int, num_bytes: int) -> None:
        """End the context at a nesting depth, if one began there, and check it."""
        if not self._open or depth > self._open[-1].start:
            return
        context = self._open.pop()
        known: dict[bytes, int] = {}
        for term in context.values:
            if term not in known:
                self._resolve(context, term, known)
        self._copy(num_bytes)

    def _use(self, text: bytes, num_bytes: int) -> None:
        if text in self._scoped:
            self._copy(num_bytes)

    def _copy(self, num_bytes: int) -> None:
        """Count that the parser copies all terms."""
        self._num_copied += len(self._lengths)
        if self._num_copied > max(
            LEAST_TERMS, TERMS_PER_BYTE * num_bytes
        ) or self._num_expanded > max(LEAST_EXPANDED, EXPANDED_PER_BYTE * num_bytes):
            raise DataError(
                f"{self._path.name}: its contexts expand to far more than the file contains. "
                "Define each term once, in one context at the beginning, without long prefixes and "
                "without contexts of terms."
            )

    def _resolve(self, context: _Context, term: bytes, known: dict[bytes, int]) -> None:
        """Compute the length of the definition of a term in full, and of all that it needs.

        Args:
            context: The context of the term.
            term: The term.
            known: For each resolved term, the number of terms in the longest chain from it.
        """
        chain = [(term, context.needs(term))]
        within = {term}
        while chain:
            current, needs = chain[-1]
            following = [
                one for one, _ in needs if one in context.values and one not in known
            ]
            if within.intersection(following):
                raise DataError(
                    f"{self._path.name}: terms of its context are defined by each other in a "
                    "circle. Define each term by an IRI."
                )
            if following:
                chain.append((following[0], context.needs(following[0])))
                within.add(following[0])
            else:
                self._note(context, current, needs, known)
                chain.pop()
                within.discard(current)
            if len(chain) + known.get(current, 0) > self._limits.depth:
                what = "the number of prefixes that are defined by each other"
                raise limit_error(self._path, what, "depth", self._limits)

    def _note(
        self,
        context: _Context,
        term: bytes,
        needs: list[tuple[bytes, int]],
        known: dict[bytes, int],
    ) -> None:
        """Note the length of a term whose prefixes are all known."""
        known[term] = 1 + max((known.get(one, 0) for one, _ in needs), default=0)
        lengths = (self._lengths.get(one, len(one)) + rest for one, rest in needs)
        # a value that needs no other term is an IRI, or a name behind the vocabulary
        own = sum(map(len, (*context.values[term], term)))
        length = max(lengths, default=0) + own + self._vocabulary
        self._lengths[term] = length
        self._num_expanded += length
