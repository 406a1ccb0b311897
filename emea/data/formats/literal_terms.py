"""Splits literals in N-Triples syntax, such as ``"text"@en`` or ``"5"^^<datatype>``."""

import re
from functools import lru_cache

from emea.data.attributes import PLAIN, Kind

_ESCAPE = re.compile(r'\\(?:([tbnrf"\'\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))')
_SHORT = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def literal_parts(term: str) -> tuple[str, Kind]:
    """Return the text of a literal, and its language and datatype.

    Args:
        term: The literal as the parser writes it, without the datatype ``xsd:string``.
    """
    end = term.rindex('"')
    text, suffix = term[1:end], term[end + 1 :]
    if "\\" in text:
        text = _ESCAPE.sub(_character, text)
    return text, _kind(suffix)


def literal_parts_of_bytes(term: bytes) -> tuple[str, Kind]:
    """Return the parts of a literal in UTF-8, as ``literal_parts`` does."""
    end = term.rindex(b'"')
    text = term[1:end].decode()
    if "\\" in text:
        text = _ESCAPE.sub(_character, text)
    return text, _kind_of_bytes(term[end + 1 :])


@lru_cache(maxsize=4096)
def _kind_of_bytes(suffix: bytes) -> Kind:
    return _kind(suffix.decode())


@lru_cache(maxsize=4096)
def _kind(suffix: str) -> Kind:
    """Return language and datatype from the suffix. Files repeat few suffixes, so cache them."""
    if not suffix:
        return PLAIN
    if suffix.startswith("@"):
        return Kind(language=suffix[1:].lower())
    return Kind(datatype=suffix[3:-1])


def plain_text(term: str) -> tuple[str, Kind]:
    """Return the cell of a table as a literal without a language and a datatype."""
    return term, PLAIN


def _character(escape: re.Match[str]) -> str:
    short, four, eight = escape.groups()
    if short is not None:
        return _SHORT.get(short, short)
    return chr(int(four or eight, 16))
