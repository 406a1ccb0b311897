"""Opens input files, finds and checks their format, and counts lines that cannot be used."""

import bz2
import gzip
import io
import logging
import lzma
import pkgutil
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from emea.data.formats.limits import Guard, LimitedStream, PackedFile
from emea.data.formats.settings import INPUT_FORMATS, GraphForm, Reader
from emea.errors import ConfigError, DataError, one_line
from emea.runtime.regular_file import open_regular

if TYPE_CHECKING:
    from emea.data.formats.repairs import Repairs

UTF8_BOM = b"\xef\xbb\xbf"
CHUNK_SIZE = 1 << 18
"""Bytes read at once. The objects built from them should fit in the processor's cache."""


@contextmanager
def byte_stream(
    path: Path, has_lines: bool = True, guard: Guard | None = None
) -> Iterator[IO[bytes]]:
    """Open a file as a stream of bytes, without a byte order mark.

    A file whose name ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` is decompressed. The current
    ``ReadingLimits`` apply.

    Args:
        path: The file.
        has_lines: Whether the format consists of lines, whose length is limited.
        guard: Checks all bytes before they are passed on, if given.

    Raises:
        DataError: The file cannot be read, exceeds a limit, is compressed in another way or encoded
            in UTF-16, or its compression is damaged.
    """
    try:
        with open_regular(path) as file:
            opened = OPENERS.get(path.suffix.lower())
            packed = PackedFile(file, path)
            stream = opened(packed) if opened else file
            start = stream.peek(NUM_FIRST_BYTES)
            for first, fault in FIRST_BYTES.items():
                if start.startswith(first):
                    inside = "The content of " if is_packed(path) else ""
                    raise DataError(f"{inside}{path.name} {fault}")
            if start.startswith(UTF8_BOM):
                stream.read(len(UTF8_BOM))
            limited = LimitedStream(stream, path, has_lines, guard, packed)
            yield io.BufferedReader(limited, CHUNK_SIZE)
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if is_packed(path) and getattr(error, "errno", None) is None:
            kind = NAMES[path.suffix.lower()]
            raise DataError(
                f"{path.name} is damaged or not a {kind} file: {error}"
            ) from error
        raise DataError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error


class _PackedStreams(io.RawIOBase):
    """Decompresses all streams of a file, also after padding, where the standard library stops."""

    def __init__(self, file: PackedFile, decoder: Callable[[], Any]) -> None:
        self._file, self._new_decoder, self._decoder = file, decoder, decoder()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        while True:
            packed = b""
            if self._decoder.eof:
                packed = self._decoder.unused_data.lstrip(b"\0")
                while not packed:
                    if not (packed := self._file.read(io.DEFAULT_BUFFER_SIZE)):
                        return 0
                    packed = packed.lstrip(b"\0")
                self._decoder = self._new_decoder()
            elif self._decoder.needs_input:
                packed = self._file.read(io.DEFAULT_BUFFER_SIZE)
                if not packed:
                    raise EOFError("it ends within compressed data")
            if block := self._decoder.decompress(packed, len(buffer)):
                buffer[: len(block)] = block
                return len(block)


def _zstd_stream(file: PackedFile) -> io.BufferedReader:
    import pyarrow

    source = pyarrow.PythonFile(file, mode="r")
    return io.BufferedReader(pyarrow.CompressedInputStream(source, "zstd"))


OPENERS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".dz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": lambda file: io.BufferedReader(_PackedStreams(file, bz2.BZ2Decompressor)),
    ".xz": lambda file: io.BufferedReader(_PackedStreams(file, lzma.LZMADecompressor)),
    ".zst": _zstd_stream,
}
"""How a file is decompressed, by suffix."""

NAMES = {".gz": "gzip", ".dz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}

FIRST_BYTES = {
    b"\x1f\x8b": "is compressed with gzip. Its name must end in .gz.",
    b"PK\x03\x04": "is a zip archive. Extract it.",
    b"BZh91AY&SY": "is compressed with bzip2. Its name must end in .bz2.",
    b"\xfd7zXZ\x00": "is compressed with xz. Its name must end in .xz.",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd. Its name must end in .zst.",
    b"\xff\xfe": "is encoded in UTF-16. Convert it to UTF-8.",
    b"\xfe\xff": "is encoded in UTF-16. Convert it to UTF-8.",
}
"""What is wrong with a file that begins with these bytes, and what to do. No text in UTF-8 does."""

NUM_FIRST_BYTES = max(map(len, FIRST_BYTES))


def is_packed(path: Path) -> bool:
    """Return whether the name of a file says that it is compressed."""
    return path.suffix.lower() in OPENERS


FORMATS = {one.name: one for one in INPUT_FORMATS}
"""All formats by name, also those that a user has registered."""


def graph_formats() -> list[str]:
    """Return the names of the formats of graphs."""
    return [name for name, one in FORMATS.items() if one.graph_reader]


def link_formats() -> list[str]:
    """Return the names of the formats of links."""
    return [name for name, one in FORMATS.items() if one.link_reader]


def format_suffixes() -> dict[str, str]:
    """Return the name of the format of each suffix of file names, without that of a compression."""
    return {suffix: one.name for one in FORMATS.values() for suffix in one.suffixes}


def file_format(
    path: Path, given: str | None, allowed: Collection[str], key: str
) -> str:
    """Return the format of a file.

    Args:
        path: The file. Its first bytes determine the format, or its suffix if they do not.
        given: The format that the user chose, if any.
        allowed: The supported formats.
        key: The setting with which the user chooses the format.

    Raises:
        ConfigError: The given format does not exist.
        DataError: The format is unknown, and none is given.
    """
    if given is not None and given not in allowed:
        raise ConfigError(
            f"{key} must be null or one of {', '.join(allowed)}, got {given!r}"
        )
    unpacked = path.with_suffix("") if is_packed(path) else path
    by_name = format_suffixes().get(unpacked.suffix.lower())
    found = given or content_format(path) or by_name
    if given is None and by_name is not None and found in FORMATS[by_name].begins_like:
        found = by_name  # the first lines do not tell them apart
    if found is None and path.is_dir():
        raise DataError(f"{path} is a folder, not a file.")
    if found is None or found not in allowed:
        known = ", ".join(
            suffix for suffix, name in format_suffixes().items() if name in allowed
        )
        raise DataError(
            f"{path.name}: unknown file format. Known suffixes are {known} (most of them also with "
            f".gz, .bz2, .xz or .zst). Rename the file or set {key}={'|'.join(allowed)}."
        )
    if not FORMATS[found].is_packable and is_packed(path):
        raise DataError(
            f"{path.name}: {found} is already compressed and is not read from {path.suffix}. "
            "Decompress it."
        )
    return found


NUM_BYTES = 4096
_AFTER_COMMENTS = rb"(?:\s|#[^\n]*\n)*+"


def content_format(path: Path) -> str | None:
    """Return the format that the first bytes of a file look like, or ``None``."""
    start = b""
    with suppress(DataError), byte_stream(path, has_lines=False) as stream:
        start = stream.read(NUM_BYTES)
    for name, one in FORMATS.items():
        beginning = _AFTER_COMMENTS + rb"(?:" + one.beginning + rb")"
        if one.beginning and re.match(beginning, start):
            return name
    return None


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
        base_iri: What relative IRIs are resolved against.

    Attributes:
        num_lines: The number of skipped lines.
        stops: Whether to stop at the first one.
    """

    def __init__(
        self,
        label: str,
        on_error: str = "stop",
        unit: str = "line",
        base_iri: str | None = None,
    ) -> None:
        if on_error not in ON_ERROR:
            raise ConfigError(
                f"on_error must be {' or '.join(ON_ERROR)}, got {on_error!r}"
            )
        self.label = label
        self.unit = unit
        self.num_lines = 0
        self.stops = on_error == "stop"
        self._base_iri = base_iri

    @cached_property
    def repairs(self) -> "Repairs":
        """Handles faults of RDF with which it can still be read."""
        # only readers of RDF need pyoxigraph, and tables are read without it
        from emea.data.formats.repairs import Repairs

        return Repairs(self.label, self._base_iri)

    def add(self, line: int | None, reason: str) -> None:
        """Report a line that cannot be used. The parsers of some formats do not know its number.

        Raises:
            DataError: ``on_error`` is ``stop``.
        """
        place = "" if line is None else f", {self.unit} {line}"
        problem = f"{self.label}{place}: {reason}"
        if self.stops:
            raise DataError(
                f"{problem} (use data.on_error=skip to skip such {self.unit}s)"
            )
        self.num_lines += 1
        if self.num_lines <= NUM_NAMED:
            log.warning("%s: skipped", one_line(problem))

    def log_others(self, path: Path | None = None) -> None:
        """Log what was repaired, and how many more lines were skipped than logged one by one."""
        if "repairs" in self.__dict__:
            self.repairs.log(path, partial(byte_stream, has_lines=False))
        if self.num_lines > NUM_NAMED:
            num_others = self.num_lines - NUM_NAMED
            log.warning("%s: %d more %ss skipped", self.label, num_others, self.unit)


@dataclass(frozen=True)
class InputFile:
    """A file whose format is known, and how to read it: what a reader of `InputFormat` is given.

    Args:
        path: The file.
        format: The name of its format.
        bad: Handles lines that cannot be used.
        attributes: For tables: relations and columns with literals.
        keep_literals: For graphs: whether to keep all literals, not only labels.
        form: For graphs: whether the file is an ontology, or what the columns of a table mean.
    """

    path: Path
    format: str
    bad: BadLines
    attributes: Sequence[str] = ()
    keep_literals: bool = False
    form: GraphForm = field(default_factory=GraphForm)


def loaded_reader(reader: Reader | None) -> Callable[[InputFile], Any]:
    """Return the function that reads a format, which is imported now if only its place is given."""
    found = pkgutil.resolve_name(reader) if isinstance(reader, str) else reader
    assert found is not None, "only formats with a reader are chosen"
    read: Callable[[InputFile], Any] = found
    return read
