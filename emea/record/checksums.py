"""Checksums inside the files of a run folder: in JSON a key, in YAML and archives a comment.

Each file carries its own checksum, so that it is complete after every atomic write. Checkpoints
have theirs in their metadata.
"""

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from emea.errors import DataError
from emea.record.atomic import json_object, write_atomic, write_json

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


def read_checked_json(path: Path) -> dict[str, Any]:
    """Read a JSON object and verify its checksum; files of earlier versions have none.

    Raises:
        DataError: If the file is damaged.
        OSError: If the file cannot be read.
    """
    try:
        content = json_object(path.read_bytes())
    except ValueError as error:
        raise damaged(path, str(error)) from error
    if KEY in content and content.pop(KEY) != digest(content):
        raise damaged(path, MISMATCH)
    return content


def write_checked_yaml(path: Path, text: str) -> None:
    """Write YAML and its checksum, atomically."""
    write_atomic(path, f"# {KEY}: {sha256(text.encode())}\n{text}")


def read_checked_yaml(path: Path) -> str:
    """Read the text of a YAML file and verify its checksum; files of earlier versions have none.

    Raises:
        DataError: If the file is damaged.
        OSError: If the file cannot be read.
    """
    content = path.read_bytes()
    if f"{KEY}:".encode() in content[:SEARCHED]:
        line = COMMENT.match(content)
        if line is None or line[1] != sha256(content[line.end() :]).encode():
            raise damaged(path, MISMATCH, " If you edited it, remove its first line.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise damaged(path, str(error)) from error


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
        DataError: If the file is damaged.
        OSError: If the file cannot be read.
        Exception: numpy, zipfile and zlib raise different errors for files of other programs.
    """
    content = path.read_bytes()
    before, written = content[:-DIGITS], content[-DIGITS:]
    if before.endswith(ARCHIVE_COMMENT) and sha256(before).encode() != written:
        raise damaged(path, MISMATCH)
    with np.load(io.BytesIO(content)) as file:
        return {name: file[name] for name in file.files}


def damaged(path: Path, problem: str, advice: str = "") -> DataError:
    """Return the error for a damaged file of a run folder."""
    return DataError(f"{path} is damaged: {problem}. Restore the file or run it again.{advice}")
