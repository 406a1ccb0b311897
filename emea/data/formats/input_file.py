"""Opens input files, finds and checks their format, and counts lines that cannot be used."""

import gzip
import logging
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from emea.data.formats.limits import (
    Guard,
    LimitedStream,
    check_regular_file,
)
from emea.errors import ConfigError, DataError, one_line

UTF8_BOM = b"\xef\xbb\xbf"
CHUNK_SIZE = 1 << 18
"""Bytes read at once. The objects built from them should fit in the processor's cache."""


@contextmanager
def byte_stream(
    path: Path, has_lines: bool = True, guard: Guard | None = None
) -> Iterator[IO[bytes]]:
    """Open a file as a stream of bytes, without a byte order mark.

    A file whose name ends in ``.gz`` is decompressed. The current ``ReadingLimits`` apply.

    Args:
        path: The file.
        has_lines: Whether the format consists of lines, whose length is limited.
        guard: Checks all bytes before they are passed on, if given.

    Raises:
        DataError: The file cannot be read, exceeds a limit, is compressed in another way or encoded
            in UTF-16, or its gzip is damaged.
    """
    check_regular_file(path)
    try:
        with _opened(path) as stream:
            start = stream.read(NUM_FIRST_BYTES)
            _check_first_bytes(path, start)
            stream.seek(len(UTF8_BOM) if start.startswith(UTF8_BOM) else 0)
            yield BufferedReader(LimitedStream(stream, path, has_lines, guard), CHUNK_SIZE)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path.name} is damaged or not a gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


FIRST_BYTES = {
    b"\x1f\x8b": "is compressed with gzip. Its name must end in .gz.",
    b"PK\x03\x04": "is a zip archive. Extract it.",
    b"BZh91AY&SY": "is compressed with bzip2. Decompress it.",
    b"\xfd7zXZ\x00": "is compressed with xz. Decompress it.",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd. Decompress it.",
    b"\xff\xfe": "is encoded in UTF-16. Convert it to UTF-8.",
    b"\xfe\xff": "is encoded in UTF-16. Convert it to UTF-8.",
}
"""What is wrong with a file that begins with these bytes, and what to do. No text in UTF-8 does."""

NUM_FIRST_BYTES = max(map(len, FIRST_BYTES))


def _check_first_bytes(path: Path, start: bytes) -> None:
    for first, fault in FIRST_BYTES.items():
        if start.startswith(first):
            inside = "The content of " if is_gzipped(path) else ""
            raise DataError(f"{inside}{path.name} {fault}")


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if is_gzipped(path) else path.open("rb")


def is_gzipped(path: Path) -> bool:
    """Return whether the name of a file says that it is compressed."""
    return path.suffix.lower() == ".gz"


SUFFIXES = {
    ".nt": "ntriples",
    ".ttl": "turtle",
    ".rdf": "rdfxml",
    ".owl": "rdfxml",
    ".xml": "rdfxml",
    ".tsv": "tsv",
    ".csv": "csv",
    ".parquet": "parquet",
}
"""Format by suffix of the file name, without ``.gz``."""

UNREAD_SUFFIXES = {
    **dict.fromkeys(
        (".bz2", ".xz", ".zip", ".zst", ".7z"), "Only .gz is decompressed. Extract it."
    ),
    **dict.fromkeys(
        (".nq", ".trig", ".jsonld", ".n3"), "This format is not supported. Convert it to N-Triples."
    ),
}
"""What to do with files of other well-known formats, by suffix."""

GRAPH_FORMATS = ("ntriples", "turtle", "rdfxml", "tsv", "csv", "parquet")
LINK_FORMATS = ("ntriples", "turtle", "rdfxml", "tsv", "csv")
UNPACKED_FORMATS = ("parquet",)


def file_format(path: Path, given: str | None, allowed: Collection[str], key: str) -> str:
    """Return the format of a file.

    Args:
        path: The file. Its suffix determines the format.
        given: The format that the user chose, if any.
        allowed: The supported formats.
        key: The setting with which the user chooses the format.

    Raises:
        ConfigError: The given format does not exist.
        DataError: The suffix is unknown, and no format is given.
    """
    if given is not None and given not in allowed:
        raise ConfigError(f"{key} must be null or one of {', '.join(allowed)}, got {given!r}")
    found = given or SUFFIXES.get(_unpacked(path).suffix.lower())
    if found is None and path.is_dir():
        raise DataError(f"{path} is a folder, not a file.")
    advice = UNREAD_SUFFIXES.get(_unpacked(path).suffix.lower())
    if found is None and advice is not None:
        raise DataError(f"{path.name}: {advice}")
    if found is None or found not in allowed:
        known = ", ".join(suffix for suffix, name in SUFFIXES.items() if name in allowed)
        raise DataError(
            f"{path.name}: unknown file format. Known suffixes are {known} (most of them also with "
            f".gz). Rename the file or set {key}={'|'.join(allowed)}."
        )
    if found in UNPACKED_FORMATS and is_gzipped(path):
        raise DataError(
            f"{path.name}: {found} is already compressed and is not read from .gz. Decompress it."
        )
    return found


def _unpacked(path: Path) -> Path:
    return path.with_suffix("") if is_gzipped(path) else path


log = logging.getLogger(__name__)

ON_ERROR = ("stop", "skip")
NUM_NAMED = 5
"""Skipped lines that are logged one by one. The others are counted."""


class BadLines:
    """Handles lines that cannot be used: stops at the first one, or skips and counts them.

    Args:
        label: The name of the file in messages.
        on_error: ``stop`` or ``skip``.
        unit: The unit of the file: a line, or a row.

    Attributes:
        num_lines: The number of skipped lines.
    """

    def __init__(self, label: str, on_error: str = "stop", unit: str = "line") -> None:
        if on_error not in ON_ERROR:
            raise ConfigError(f"on_error must be {' or '.join(ON_ERROR)}, got {on_error!r}")
        self.label = label
        self.unit = unit
        self.num_lines = 0
        self._skips = on_error == "skip"

    def add(self, line: int, reason: str) -> None:
        """Report a line that cannot be used.

        Raises:
            DataError: ``on_error`` is ``stop``.
        """
        problem = f"{self.label}, {self.unit} {line}: {reason}"
        if not self._skips:
            raise DataError(f"{problem} (use data.on_error=skip to skip such {self.unit}s)")
        self.num_lines += 1
        if self.num_lines <= NUM_NAMED:
            log.warning("%s: skipped", one_line(problem))

    def log_others(self) -> None:
        """Log how many lines were skipped in addition to those that were logged one by one."""
        if self.num_lines > NUM_NAMED:
            num_others = self.num_lines - NUM_NAMED
            log.warning("%s: %d more %ss skipped", self.label, num_others, self.unit)


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
