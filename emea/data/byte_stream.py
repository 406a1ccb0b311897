"""Files as streams of bytes, plain or gzipped, with errors that name the file."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from emea.errors import DataError

UTF8_BOM = b"\xef\xbb\xbf"
CHUNK_SIZE = 1 << 18
"""Bytes read at once: what is made of them should stay in the processor's cache."""


@contextmanager
def byte_stream(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked where its name ends in ``.gz``; no byte order mark.

    Raises:
        DataError: the file cannot be read, or its gzip is damaged.
    """
    try:
        with _opened(path) as stream:
            if stream.read(len(UTF8_BOM)) != UTF8_BOM:
                stream.seek(0)
            yield stream
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
