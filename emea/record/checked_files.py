"""Files of a run folder: atomic writes, checksums, and one guarded way to read them.

Each file carries its own checksum, so that it is complete after every atomic write: JSON in a key,
YAML and archives in a comment. Checkpoints have theirs in their metadata.
"""

import hashlib
import io
import json
import logging
import os
import re
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from emea.errors import DataError

SUFFIX = ".tmp"
"""The end of the names of temporary files, which start with a dot."""

LINES_PER_BLOCK = 4096
"""Lines that are encoded and written at once."""

Bytes = bytes | bytearray | memoryview
"""The types of bytes-like objects that can be written."""

_UMASK = threading.Lock()


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of killed writers; no other process may write to the folder."""
    for path in folder.glob(f".*{SUFFIX}"):
        path.unlink(missing_ok=True)


@contextmanager
def open_atomic(path: Path | str) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces the file at the path if no error occurs.

    Args:
        path: The file to write; its folder is created if it is missing.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Same folder, because os.replace is atomic only within one file system.
    descriptor, temporary = tempfile.mkstemp(SUFFIX, f".{path.name}.", path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_atomic(path: Path | str, content: str | Bytes | Iterable[Bytes]) -> None:
    """Replace a file in one step, so that a killed process leaves no half-written file.

    Args:
        path: The file to write; its folder is created if it is missing.
        content: Text (written as UTF-8), bytes, a bytearray, a memoryview, or an iterable of chunks
            of these three types.
    """
    if isinstance(content, str):
        content = content.encode()
    with open_atomic(path) as file:
        file.writelines([content] if isinstance(content, Bytes) else content)


def write_lines(path: Path | str, lines: Iterable[str]) -> None:
    """Write lines to a file, atomically; a newline is added to each."""
    with open_atomic(path) as file:
        remaining = iter(lines)
        while block := list(islice(remaining, LINES_PER_BLOCK)):
            file.write(("\n".join(block) + "\n").encode())


def write_json(path: Path | str, value: Any) -> None:
    """Write a value as indented JSON, atomically."""
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _mode(path: Path) -> int:
    """Return the permissions of the new file: those of the old one, or the usual ones."""
    if path.exists():
        return path.stat().st_mode & 0o777
    with _UMASK:  # another thread must not read the mask while it is 0
        mask = os.umask(0)
        os.umask(mask)
    return 0o666 & ~mask


def json_object(text: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        ValueError: If the text is not a JSON object; the message says why.
    """
    try:
        content = json.loads(text.decode())
        # an escape can be half of a surrogate pair, which cannot be encoded
        json.dumps(content, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(content, dict):
        raise ValueError("it contains no JSON object")
    return content


KEY = "sha256"
MISMATCH = "its content has another checksum"
COMMENT = re.compile(rb"# sha256: ([0-9a-f]{64})\n")
SEARCHED = 20
"""The first line of a YAML file, which a truncated file still has, and where it is looked for."""

ARCHIVE_COMMENT, DIGITS = b"sha256: ", 64
"""The end of an archive: the comment of the zip format."""

COMPRESSION = 3
"""Level of zlib. Ids and probabilities take as much space as with the default, 6, in 40% of the
time."""


def sha256(content: bytes) -> str:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def digest(content: Mapping[str, Any]) -> str:
    """Return the checksum of a JSON object; the order of its keys does not matter."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode())


def write_checked_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object and its checksum, atomically."""
    write_json(path, {**content, KEY: digest(content)})


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Report every error of reading a file as one that names it.

    Raises:
        DataError: If the file cannot be read, or its content is damaged.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # parsers raise errors of many types
        if isinstance(error, OSError) and error.strerror:
            raise DataError(f"{path} cannot be read: {error.strerror}") from error
        raise damaged(path, str(error)) from error


def read_checked_json(path: Path) -> dict[str, Any]:
    """Read a JSON object and verify its checksum; files of earlier versions have none.

    Raises:
        DataError: If the file cannot be read, or is damaged.
    """
    with reading(path):
        content = json_object(path.read_bytes())
        if KEY in content and content.pop(KEY) != digest(content):
            raise damaged(path, MISMATCH)
        return content


def write_checked_yaml(path: Path, text: str) -> None:
    """Write YAML and its checksum, atomically."""
    write_atomic(path, f"# {KEY}: {sha256(text.encode())}\n{text}")


def read_checked_yaml(path: Path) -> str:
    """Read the text of a YAML file and verify its checksum; files of earlier versions have none.

    Raises:
        DataError: If the file cannot be read, or is damaged.
    """
    with reading(path):
        content = path.read_bytes()
        if f"{KEY}:".encode() in content[:SEARCHED]:
            line = COMMENT.match(content)
            if line is None or line[1] != sha256(content[line.end() :]).encode():
                raise damaged(path, MISMATCH, " If you edited it, remove its first line.")
        return content.decode()


def write_checked_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Write named arrays and their checksum, compressed and atomically."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
        archive.comment = ARCHIVE_COMMENT + b"0" * DIGITS
    content = buffer.getvalue()[:-DIGITS]
    write_atomic(path, content + sha256(content).encode())


def read_checked_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of a file and verify its checksum; files of earlier versions have none.

    Raises:
        DataError: If the file cannot be read, or is damaged.
    """
    with reading(path):
        content = path.read_bytes()
        before, written = content[:-DIGITS], content[-DIGITS:]
        if before.endswith(ARCHIVE_COMMENT) and sha256(before).encode() != written:
            raise damaged(path, MISMATCH)
        with np.load(io.BytesIO(content)) as file:
            return {name: file[name] for name in file.files}


def damaged(path: Path, problem: str, advice: str = "") -> DataError:
    """Return the error for a damaged file of a run folder."""
    return DataError(f"{path} is damaged: {problem}. Restore the file or run it again.{advice}")


logger = logging.getLogger(__name__)


class BackgroundWriter:
    """Runs one write at a time in a thread.

    An error of a write is raised by the next call. At the end of the context, the last write is
    finished even if an error ended the context; an error of the write is then logged.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None

    def __enter__(self) -> "BackgroundWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._threads.shutdown()
        if error is None:
            self.wait()
        elif self._pending is not None and (failure := self._pending.exception()):
            logger.warning("The last write failed, too: %s", failure)

    def write(self, work: Callable[[], None]) -> None:
        """Start a write after the previous one has ended.

        Args:
            work: Writes the files. What it reads must not change until then.
        """
        self.wait()
        self._pending = self._threads.submit(work)

    def wait(self) -> None:
        """Wait for the last write, and raise its error."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()
