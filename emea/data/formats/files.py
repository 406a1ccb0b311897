"""Input files as streams: plain or gzipped bytes, their format, and lines that cannot be used."""

import gzip
import logging
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from emea.data.formats.limits import LimitedStream, XMLGuard, check_regular_file
from emea.errors import ConfigError, DataError, one_line

UTF8_BOM = b"\xef\xbb\xbf"
CHUNK_SIZE = 1 << 18
"""Bytes read at once: what is made of them should stay in the processor's cache."""


@contextmanager
def byte_stream(path: Path, has_lines: bool = True, is_xml: bool = False) -> Iterator[IO[bytes]]:
    """Open a file as a stream of bytes, without a byte order mark.

    A file whose name ends in ``.gz`` is decompressed. The current ``ReadingLimits`` apply.

    Args:
        path: The file.
        has_lines: Whether the format consists of lines, whose length is limited.
        is_xml: Whether the file is XML, which is checked before it is passed on.

    Raises:
        DataError: The file cannot be read, exceeds a limit, or its gzip is damaged.
    """
    check_regular_file(path)
    try:
        with _opened(path) as stream:
            if stream.read(len(UTF8_BOM)) != UTF8_BOM:
                stream.seek(0)
            guard = XMLGuard(path) if is_xml else None
            yield BufferedReader(LimitedStream(stream, path, has_lines, guard), CHUNK_SIZE)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path.name} is damaged or no gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if is_gzipped(path) else path.open("rb")


def is_gzipped(path: Path) -> bool:
    """Whether the name says that the file is packed."""
    return path.suffix.lower() == ".gz"


def line_chunks(path: Path, size: int = CHUNK_SIZE) -> Iterator[bytes]:
    """Whole lines of a file, many at once; the last one has its newline in any case."""
    with byte_stream(path) as stream:
        rest = b""
        while block := stream.read(size):
            block = rest + block
            cut = block.rfind(b"\n") + 1
            rest = block[cut:]
            if cut:
                yield block[:cut]
        if rest:
            yield rest + b"\n"


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
"""Format by the end of a file's name, before ``.gz`` where it is packed."""

GRAPH_FORMATS = ("ntriples", "turtle", "rdfxml", "tsv", "csv", "parquet")
LINK_FORMATS = ("ntriples", "turtle", "rdfxml", "tsv", "csv")
UNPACKED_FORMATS = ("parquet",)


def file_format(path: Path, given: str | None, allowed: Collection[str], key: str) -> str:
    """The format of a file.

    Args:
        path: the file; its name tells the format.
        given: the format where the user says it.
        allowed: formats that can be read here.
        key: the setting by which the user says it.

    Raises:
        ConfigError: the given format does not exist.
        DataError: the name tells no format.
    """
    if given is not None and given not in allowed:
        raise ConfigError(f"{key} must be null or one of {', '.join(allowed)}, got {given!r}")
    found = given or SUFFIXES.get(_unpacked(path).suffix.lower())
    if found is None or found not in allowed:
        known = ", ".join(suffix for suffix, name in SUFFIXES.items() if name in allowed)
        raise DataError(
            f"{path.name}: the file name tells no format; known endings are {known} "
            f"(most of them also with .gz), or say it with {key}={'|'.join(allowed)}"
        )
    if found in UNPACKED_FORMATS and is_gzipped(path):
        raise DataError(f"{path.name}: {found} packs itself, it cannot be read from .gz")
    return found


def _unpacked(path: Path) -> Path:
    return path.with_suffix("") if is_gzipped(path) else path


log = logging.getLogger(__name__)

ON_ERROR = ("stop", "skip")
NUM_NAMED = 5
"""Lines that are named when they are passed over; the others are counted."""


class BadLines:
    """Stops at the first line that cannot be used, or counts such lines and goes on.

    Args:
        label: what messages call the file.
        on_error: ``stop`` or ``skip``.
        unit: what the file consists of, where that is not lines.

    Attributes:
        num_lines: how many lines were passed over.
    """

    def __init__(self, label: str, on_error: str = "stop", unit: str = "line") -> None:
        if on_error not in ON_ERROR:
            raise ConfigError(f"on_error must be {' or '.join(ON_ERROR)}, got {on_error!r}")
        self.label = label
        self.unit = unit
        self.num_lines = 0
        self._skips = on_error == "skip"

    def add(self, line: int, reason: str) -> None:
        """Meet a line that cannot be used.

        Raises:
            DataError: where reading stops at such lines.
        """
        problem = f"{self.label}, {self.unit} {line}: {reason}"
        if not self._skips:
            raise DataError(f"{problem} (data.on_error=skip passes over such {self.unit}s)")
        self.num_lines += 1
        if self.num_lines <= NUM_NAMED:
            log.warning("%s: passed over", one_line(problem))

    def tell(self) -> None:
        """Say how many lines were passed over without being named."""
        if self.num_lines > NUM_NAMED:
            unnamed = self.num_lines - NUM_NAMED
            log.warning("%s: %d more %ss passed over", self.label, unnamed, self.unit)
