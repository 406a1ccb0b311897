"""Atomic writes, and reading of JSON objects."""

import json
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

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
