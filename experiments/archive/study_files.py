"""The two files of a study: lines of JSON and an archive, both with checksums.

``runs.jsonl`` has one line per run: configuration, tags, metrics and a digest. pandas reads it with
``pandas.read_json(path, lines=True)``. ``details.zip`` has the long parts of each run in a folder
of its name: ``history.jsonl`` (metrics of each iteration), ``series.jsonl`` (everything that was
logged) and the ranks of the test links as ``.npy`` arrays. ``numpy.load`` opens it, too.

Both files are sorted by the name of the run and contain no times of their own, so equal runs give
equal bytes. The line of a run has the SHA-256 of each of its details and a digest of itself.
"""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from emea.data.arrays import FloatArray
from emea.errors import DataError
from emea.record.checked_files import digest, json_object, sha256, write_atomic

RUNS_FILE, DETAILS_FILE = "runs.jsonl", "details.zip"
HISTORY, SERIES = "history.jsonl", "series.jsonl"
FIX = "Restore both files of the study from version control."

ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every member, so that the bytes depend on the content only."""


@dataclass(frozen=True, eq=False)
class PackedRun:
    """Holds a run that is ready to be written to a study.

    Args:
        entry: Its line, without digests.
        details: The content of its details by name.
    """

    entry: dict[str, Any]
    details: dict[str, bytes]

    def signed(self) -> dict[str, Any]:
        """Return the line with the checksums of the details and its own digest."""
        details = {
            name: sha256(content) for name, content in sorted(self.details.items())
        }
        entry = {**self.entry, "details": details}
        return {**entry, "digest": digest(entry)}


def read_lines(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a study, verified and in order.

    Raises:
        DataError: If there are no lines, or a line is damaged.
    """
    path = folder / RUNS_FILE
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DataError(
            f"{folder} has no recorded runs: {path} cannot be read."
        ) from error
    entries = [_entry(path, number, line) for number, line in enumerate(lines, start=1)]
    names = [entry["run"] for entry in entries]
    if names != sorted(set(names)):
        raise DataError(f"{path} is damaged: its runs are not in order. {FIX}")
    return entries


def _entry(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry = json_object(line)
        written = entry.pop("digest", None)
        if written != digest(entry):
            raise ValueError("its digest does not match")
    except ValueError as error:
        raise DataError(f"{path}, line {number} is damaged: {error}. {FIX}") from error
    return {**entry, "digest": written}


def write_lines(folder: Path, entries: Mapping[str, dict[str, Any]]) -> None:
    """Write the lines of a study, by name."""
    lines = [
        json.dumps(entries[name], ensure_ascii=False) + "\n" for name in sorted(entries)
    ]
    write_atomic(folder / RUNS_FILE, "".join(lines))


def read_detail(folder: Path, name: str, checksum: str | None) -> bytes:
    """Return the content of one member of the archive.

    Raises:
        DataError: If the member is missing, damaged, or has another checksum.
    """
    path = folder / DETAILS_FILE
    try:
        content = _archive(path).read(name)
    # zipfile and zlib raise many kinds of errors for damaged files
    except Exception as error:
        raise DataError(
            f"{path} is damaged: {name} cannot be read ({error}). {FIX}"
        ) from error
    if sha256(content) != checksum:
        raise DataError(f"{path} is damaged: {name} has another checksum. {FIX}")
    return content


def detail_names(folder: Path) -> set[str]:
    """Return the names of all members of the archive."""
    path = folder / DETAILS_FILE
    try:
        return set(_archive(path).namelist())
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read ({error}). {FIX}") from error


def write_details(folder: Path, members: Mapping[str, bytes]) -> None:
    """Write the archive of a study."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, ZIP_TIME)
            info.external_attr = 0o644 << 16
            file.writestr(info, members[name], zipfile.ZIP_DEFLATED, compresslevel=9)
    write_atomic(folder / DETAILS_FILE, buffer.getvalue())


def _archive(path: Path) -> zipfile.ZipFile:
    state = path.stat()
    return _read_archive(path.resolve(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _read_archive(path: Path, changed: int, size: int) -> zipfile.ZipFile:
    """Return the archive in memory, because the details of many runs are read in sequence."""
    return zipfile.ZipFile(BytesIO(path.read_bytes()))


def encoded_ranks(ranks: FloatArray) -> bytes:
    """Return ranks as a ``.npy`` array of the smallest sufficient unsigned integers.

    Ranks of ties are multiples of one half. The array contains twice the rank, and 0 for infinity.

    Raises:
        ValueError: If a rank is not a positive multiple of one half.
    """
    twice = np.where(np.isinf(ranks), 0, 2 * ranks.astype(np.float64))
    if not (np.isfinite(twice) & (twice == np.round(twice)) & (ranks > 0)).all():
        raise ValueError("a rank is not a positive multiple of one half")
    kind = np.min_scalar_type(int(twice.max(initial=0))).newbyteorder("<")
    buffer = BytesIO()
    np.lib.format.write_array(buffer, twice.astype(kind), allow_pickle=False)
    return buffer.getvalue()


def decoded_ranks(content: bytes) -> FloatArray:
    """Return the ranks that ``encoded_ranks`` stored."""
    stored = np.load(BytesIO(content), allow_pickle=False)
    ranks: FloatArray = stored.astype(np.float64) / 2
    ranks[stored == 0] = np.inf
    return ranks
