"""Limits on the content of an input file, checked while the file is read."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import RawIOBase
from pathlib import Path
from typing import IO, BinaryIO

from emea.data.formats.settings import ReadingLimits
from emea.errors import DataError

MIB = 1 << 20
RATIO_FROM = 16 * MIB
"""Decompressed size above which the ratio is limited. Small files may be very repetitive."""

_CURRENT: ContextVar[ReadingLimits] = ContextVar("limits", default=ReadingLimits())


def current_limits() -> ReadingLimits:
    """Return the limits of the reading in progress."""
    return _CURRENT.get()


@contextmanager
def reading_limits(limits: ReadingLimits) -> Iterator[None]:
    """Change the limits for the files that are read within the context."""
    token = _CURRENT.set(limits)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def limit_error(
    path: Path, what: str, name: str, limits: ReadingLimits, line: int | None = None
) -> DataError:
    """Return the error for a file that exceeds a limit. The caller raises it.

    Args:
        path: The file.
        what: The quantity that exceeds the limit.
        name: The name of the limit.
        limits: The limits of the reading.
        line: The number of the line, if it is known.
    """
    place = path.name if line is None else f"{path.name}, line {line}"
    return DataError(
        f"{place}: {what} exceeds data.limits.{name}={getattr(limits, name)}. If the file is "
        f"correct, raise the limit (data.limits.{name}=...)."
    )


@contextmanager
def explained_failures(path: Path) -> Iterator[None]:
    """Turn failures of a parser while a file is read into an error that names the file.

    Raises:
        DataError: There is not enough memory, a native parser failed, or a string or name exceeds
            the buffer of the RDF parser.
    """
    try:
        yield
    except MemoryError as error:
        if "buffer maximal size" in str(error):
            raise DataError(
                f"{path.name}: a string or name is longer than 16 MiB, or a quotation mark or "
                "bracket is not closed. Correct the file or remove this statement."
            ) from error
        raise DataError(
            f"{path.name}: there is not enough memory to read this file. Use a machine with more "
            "memory, or remove the parts of the file that you do not need."
        ) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # how Python sees a panic in Rust
            raise
        raise DataError(
            f"{path.name}: the parser failed: {error}. Check the file, or convert it to N-Triples."
        ) from error


class Guard:
    """Sees all bytes of a file before a native parser does, and the names that the parser returns.

    A prefix, a base, a context or a dictionary makes long names out of short ones, so a small file
    could fill the memory. The length of all names may therefore exceed the size of the file by a
    ratio only. Any reader can use this class: it needs the bytes, or their number, and the names.

    Args:
        path: The file, for messages.
        num_bytes: Its size, if the bytes are not checked one block after the other.
    """

    def __init__(self, path: Path, num_bytes: int = 0) -> None:
        self.path = path
        self.limits = current_limits()
        self._num_bytes = num_bytes
        self._num_expanded = 0

    def check(self, block: bytes) -> None:
        """Check the next bytes of the file. An empty block marks its end.

        Raises:
            DataError: The content must not reach the parser.
        """
        self._num_bytes += len(block)

    def check_expanded(self, names: Iterable[str]) -> None:
        """Check the next names of the file, in full.

        Raises:
            DataError: All names so far are much longer than the file.
        """
        self.check_length(sum(map(len, names)))

    def check_length(self, length: int) -> None:
        """Check the next names of the file by their length.

        Raises:
            DataError: All names so far are much longer than the file.
        """
        self._num_expanded += length
        if self._num_expanded > max(RATIO_FROM, self.limits.ratio * self._num_bytes):
            what = "the length of all names, with prefixes in full, over the size of the file"
            raise limit_error(self.path, what, "ratio", self.limits)

    def check_iri(self, length: int) -> None:
        """Check the length of an IRI that may be a prefix or a base of other IRIs.

        Raises:
            DataError: It exceeds the limit.
        """
        if length > self.limits.iri_length:
            what = "the length of an IRI"
            raise limit_error(self.path, what, "iri_length", self.limits)


class PackedFile(RawIOBase):
    """A packed file, whose bytes are counted: millions of empty members take minutes to read.

    Args:
        file: The file.
        path: Its path, for messages.

    Attributes:
        num_unpacked: The number of bytes that were decompressed from it.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self._num_read = self.num_unpacked = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes of the file."""
        block = self._file.read(size)
        self._num_read += len(block)
        if self._num_read > MIB + 2 * self.num_unpacked:
            raise DataError(
                f"{self._path.name} has many empty compressed members. Decompress it and give the "
                "result."
            )
        return block

    def readable(self) -> bool:
        """Return ``True``: the file can be read."""
        return True


class LimitedStream(RawIOBase):
    """Reads another stream and raises an error as soon as its content exceeds a limit.

    Args:
        stream: The decompressed bytes.
        path: The file, for messages.
        has_lines: Whether the format consists of lines, whose length is limited.
        guard: Checks all bytes before they are returned, if given.
        packed: The file, if it is compressed.
    """

    def __init__(
        self,
        stream: IO[bytes],
        path: Path,
        has_lines: bool,
        guard: Guard | None = None,
        packed: PackedFile | None = None,
    ) -> None:
        self._stream = stream
        self._path = path
        self._limits = current_limits()
        self._num_packed = max(1, os.path.getsize(path))
        self._num_read = self._line = self._num_lines = 0
        self._has_lines, self._guard, self._packed = has_lines, guard, packed

    def readable(self) -> bool:
        """Return ``True``: the stream can be read."""
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """Read into a buffer; return the number of bytes."""
        block = self._stream.read(len(buffer))
        self._check(block)
        buffer[: len(block)] = block
        return len(block)

    def _check(self, block: bytes) -> None:
        limits = self._limits
        path = self._path
        self._num_read += len(block)
        if self._packed is not None:
            self._packed.num_unpacked = self._num_read
        if self._num_read > limits.size_mib * MIB:
            raise limit_error(path, "the decompressed size in MiB", "size_mib", limits)
        if self._num_read > max(RATIO_FROM, limits.ratio * self._num_packed):
            raise limit_error(
                path, "decompressed over compressed size", "ratio", limits
            )
        if self._has_lines:
            cut = block.rfind(b"\n")
            self._num_lines += block.count(b"\n")
            self._line = self._line + len(block) if cut < 0 else len(block) - cut - 1
            if self._line > limits.line_mib * MIB:
                what = "the length of the line in MiB"
                raise limit_error(path, what, "line_mib", limits, self._num_lines + 1)
        if self._guard is not None:
            self._guard.check(block)
