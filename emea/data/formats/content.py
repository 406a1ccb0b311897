"""Recognises text formats by their first bytes, to explain why a file cannot be read."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from emea.data.formats.files import SUFFIXES, byte_stream, is_gzipped
from emea.errors import DataError

NUM_BYTES = 4096
_IRI = rb"<[^<>\s]*>"
_AFTER_COMMENTS = rb"(?:\s|#[^\n]*\n)*+"
BEGINNINGS = {
    "rdfxml": rb"<\?xml\s|<rdf:RDF\s|<!DOCTYPE\s+rdf:RDF\s",
    "turtle": rb"(?i:@?prefix[ \t]+[^\s<>]*:|@?base)[ \t]*" + _IRI,
    "ntriples": rb"(?:" + _IRI + rb"|_:\S+)[ \t]+" + _IRI + rb"[ \t]+[^\n]*\.[ \t]*\r?\n",
}
"""How the content of a format begins, after comments. Other formats do not begin in this way."""

NAMES = {"rdfxml": "RDF/XML", "turtle": "Turtle", "ntriples": "N-Triples"}
SAME = {("ntriples", "turtle")}
"""Formats that can be read as another one."""


@contextmanager
def content_explained(path: Path, read_as: str, given: str | None, key: str) -> Iterator[None]:
    """If a file cannot be read and its content looks like another format, say so.

    Args:
        path: The file.
        read_as: Its format, from its suffix or from the settings.
        given: The format that the user chose, if any.
        key: The setting with which the user chooses the format.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        yield
    except DataError as error:
        found = content_format(path)
        if found is None or found == read_as or (found, read_as) in SAME:
            raise
        advice = f"Set {key}={found}." if given else f"Rename it to {_renamed(path, found)}."
        raise DataError(
            f"The content of {path.name} looks like {NAMES[found]}, but it is read as "
            f"{NAMES.get(read_as, read_as)}. {advice}"
        ) from error


def content_format(path: Path) -> str | None:
    """Return the format that the first bytes of a file look like, or ``None``."""
    start = b""
    with suppress(DataError), byte_stream(path, has_lines=False) as stream:
        start = stream.read(NUM_BYTES)
    for name, beginning in BEGINNINGS.items():
        if re.match(_AFTER_COMMENTS + rb"(?:" + beginning + rb")", start):
            return name
    return None


def _renamed(path: Path, found: str) -> str:
    """Return the name of the file with the usual suffix of the format."""
    suffix = next(suffix for suffix, name in SUFFIXES.items() if name == found)
    if is_gzipped(path):
        return path.with_suffix("").with_suffix(suffix).name + path.suffix
    return path.with_suffix(suffix).name
