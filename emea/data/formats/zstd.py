"""Decompresses zstd with pyarrow, which is optional."""

import io
from typing import Any, BinaryIO

from emea.errors import DataError


class ZstdError(Exception):
    """The content is damaged or is not compressed with zstd."""


class _Unclosed:
    """Reads a file and leaves it open. pyarrow closes what it reads from."""

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read
        self.closed = False

    def close(self) -> None:
        """Do nothing."""


class ZstdFile(io.RawIOBase):
    """A file compressed with zstd, as a stream of its content.

    Args:
        file: The compressed file.

    Raises:
        DataError: pyarrow is missing.
    """

    def __init__(self, file: BinaryIO) -> None:
        try:
            import pyarrow
        except ImportError as error:
            raise DataError(
                "Files compressed with zstd need pyarrow, which is not installed. Decompress the "
                "file, or run pip install '.[parquet]' in a clone of emea."
            ) from error
        self._file = file
        self._pyarrow = pyarrow
        self._stream: Any = None
        self.seek(0)

    def readable(self) -> bool:
        """Return ``True``: the stream can be read."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position near the beginning."""
        self._file.seek(0)
        source = self._pyarrow.PythonFile(_Unclosed(self._file), mode="r")
        self._stream = self._pyarrow.CompressedInputStream(source, "zstd")
        self.read(offset)
        return offset

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes of the content."""
        try:
            block: bytes = self._stream.read(size)
        except (OSError, self._pyarrow.ArrowException) as error:
            raise ZstdError(str(error)) from error
        return block
