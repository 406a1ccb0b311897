"""Files of a run folder: atomic writes, checksums, and one guarded way to read them.

A run folder may come from a stranger. Every command opens its files with `opened` or `read_file`.

Each file carries its own checksum, so that it is complete after every atomic write: JSON in a key,
YAML and archives in a comment. Checkpoints have theirs in their metadata.
"""

import hashlib
import io
import json
import logging
import math
import os
import re
import secrets
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from emea.errors import DataError
from emea.runtime.regular_file import open_regular

SUFFIX = ".tmp"
"""The end of the names of temporary files, which start with a dot."""

LINES_PER_BLOCK = 4096
"""Lines that are encoded and written at once."""

Bytes = bytes | bytearray | memoryview
"""The types of bytes-like objects that can be written."""


TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}" + re.escape(SUFFIX))
"""Names of temporary files; others that end in the same way belong to the user."""


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove the temporary files of killed writers; no other process may write to the folder.

    Args:
        folder: The folder.
        name: The only file whose temporary files are removed, and which no other process writes;
            all by default.
    """
    for path in folder.glob(f".*{SUFFIX}"):
        is_of_file = not name or path.name[1:].rsplit(".", 2)[0] == name
        if is_of_file and TEMPORARY.fullmatch(path.name):
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
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}{SUFFIX}"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
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


def json_object(text: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        ValueError: If the text is not a JSON object; the message says why.
    """
    try:
        content = json.loads(text.decode(), object_pairs_hook=_distinct)
        # an escape can be half of a surrogate pair, which cannot be encoded
        json.dumps(content, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(content, dict):
        raise ValueError("it contains no JSON object")
    return content


def _distinct(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object whose keys differ; other readers disagree about which one counts."""
    found = dict(items)
    if len(found) < len(items):
        counts = Counter(key for key, _ in items)
        raise ValueError(f"the key {counts.most_common(1)[0][0]!r} occurs twice")
    return found


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
    text = json.dumps(
        content, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
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


MIB = 1 << 20
MOST_MIB = {".yaml": 1, ".json": 64, ".jsonl": 1024, ".tsv": 1024, ".npz": 1 << 13}
MOST_OTHER_MIB = 1 << 16
"""Maximum size of the files of a run, by suffix. Those of a million entities are far smaller."""

MOST_EXPANDED, EXPANDED_FROM = 100, 64 * MIB
"""The arrays of a file may be this many times as large as the file, above 64 MiB."""

MOST_ARRAYS = 1000


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file of a run folder.

    Raises:
        DataError: If it is a link to another folder, not a regular file, or too large.
        OSError: If it cannot be opened.
    """
    place = path.resolve()
    if not place.is_relative_to(path.parent.resolve()):
        raise DataError(
            f"{path} is a link to {place}, outside of its folder. Replace the link by a copy of "
            "the file."
        )
    with open_regular(path) as file:
        most = MOST_MIB.get(path.suffix, MOST_OTHER_MIB)
        if os.fstat(file.fileno()).st_size > most * MIB:
            raise DataError(
                f"{path} is larger than {most:,} MiB, which no run writes. Restore the file or run "
                "it again."
            )
        yield file


def read_file(path: Path) -> bytes:
    """Return the content of a file of a run folder; see `opened`."""
    with opened(path) as file:
        return file.read()


def read_checked_json(path: Path) -> dict[str, Any]:
    """Read a JSON object and verify its checksum; files of earlier versions have none.

    Raises:
        DataError: If the file cannot be read, or is damaged.
    """
    with reading(path):
        content = json_object(read_file(path))
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
        content = read_file(path)
        if f"{KEY}:".encode() in content[:SEARCHED]:
            line = COMMENT.match(content)
            if line is None or line[1] != sha256(content[line.end() :]).encode():
                raise damaged(
                    path, MISMATCH, " If you edited it, remove its first line."
                )
        return content.decode()


def write_checked_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Write named arrays and their checksum, compressed and atomically."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(
        buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION
    ) as archive:
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
        content = read_file(path)
        before = content[:-DIGITS]
        written = content[-DIGITS:]
        if before.endswith(ARCHIVE_COMMENT) and sha256(before).encode() != written:
            raise damaged(path, MISMATCH)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            num_bytes = sum(member.file_size for member in members)
            most = max(EXPANDED_FROM, MOST_EXPANDED * len(content))
            if len(members) > MOST_ARRAYS or num_bytes > most:
                raise ValueError(
                    f"its {len(members)} arrays expand to {num_bytes:,} bytes"
                )
            return {
                one.filename.removesuffix(".npy"): _array(archive, one)
                for one in members
            }


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Return an array whose header agrees with its size in the archive."""
    with archive.open(member) as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(f"{member.filename} has another version of the format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        num_bytes = math.prod(shape) * dtype.itemsize
        fits = dtype.itemsize and num_bytes == member.file_size - file.tell()
        if not fits and not dtype.hasobject:
            raise ValueError(
                f"the header of {member.filename} does not fit its content"
            )
        file.seek(0)
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        return array


def damaged(path: Path, problem: str, advice: str = "") -> DataError:
    """Return the error for a damaged file of a run folder."""
    return DataError(
        f"{path} is damaged: {problem}. Restore the file or run it again.{advice}"
    )


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
