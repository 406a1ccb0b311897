"""Finds data sets on disk and downloads missing files from pinned sources."""

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from http.client import HTTPException, IncompleteRead
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from emea.errors import DataError, writing

ROOT_VARIABLE = "EMEA_DATA"


def locate(folder: str | Path, root: str | Path | None = None) -> Path:
    """Return the folder of a data set.

    Args:
        folder: An absolute path, or a path relative to the root.
        root: The data root. The default is the variable ``EMEA_DATA``, or ``data``.
    """
    root = root or os.environ.get(ROOT_VARIABLE) or "data"
    return Path(root).expanduser() / Path(folder).expanduser()


def require_files(path: Path, required: Sequence[str], content: str) -> None:
    """Raise an error if required files of a folder are missing.

    Args:
        path: The folder.
        required: The names of the required files.
        content: A description of the content that the folder should have.
    """
    if not path.is_dir():
        problem = "does not exist"
    elif missing := [file for file in required if not (path / file).is_file()]:
        problem = f"has no {', '.join(missing)}"
    else:
        return
    raise DataError(
        f"The folder {path} {problem}. Put {content} there, or set {ROOT_VARIABLE} to the folder "
        "that contains your data sets."
    )


log = logging.getLogger(__name__)

GITHUB_RAW = "https://raw.githubusercontent.com"
SOURCES = Path(__file__).with_name("sources.json")
TIMEOUT_SECONDS = 30.0


def load_source(key: str) -> dict[str, Any]:
    """Return the entry of a data set in ``sources.json``: a repository, a commit and its files."""
    sources: dict[str, Any] = json.loads(SOURCES.read_text(encoding="utf-8"))
    if key not in sources:
        raise DataError(
            f"there is no download source {key!r}. Use one of {', '.join(sources)}."
        )
    entry: dict[str, Any] = sources[key]
    return entry


def ensure_downloaded(folder: Path, source: str, base_url: str = GITHUB_RAW) -> None:
    """Download the missing files of a data set.

    Existing files are neither checked nor changed, since a user may have modified them. The git
    blob id of a downloaded file is checked before the file gets its name. Of some files, only the
    commit is known; their ids are logged.

    Args:
        folder: The folder of the data set.
        source: A key of ``sources.json``.
        base_url: A server with the layout of GitHub's raw files.

    Raises:
        DataError: The folder cannot be read, or a file could not be downloaded or differs from the
            pinned one.
    """
    facts = load_source(source)
    files = facts["files"]
    try:
        missing = [file for file in files if not (folder / file).is_file()]
    except PermissionError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror}.") from error
    for position, file in enumerate(missing):
        url = f"{base_url}/{facts['github']}/{facts['commit']}/{quote(files[file]['path'])}"
        try:
            content = _fetch(file, url)
        except (OSError, HTTPException, ValueError) as error:
            raise _unreachable(error, url, folder, facts, missing[position:]) from error
        found = git_blob_id(content)
        expected = files[file].get("git_blob_sha1")
        if expected is None:
            log.warning(
                "%s was not compared with a known content: its git id is %s",
                file,
                found,
            )
        elif found != expected:
            raise DataError(
                f"{file} from {url} is not the expected file: its git id is {found} instead of "
                f"{expected}"
            )
        # each process has its own name for a file that is not complete, since jobs may be parallel
        part = folder / f"{file}.{os.getpid()}.part"
        with writing(folder / file):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                part.write_bytes(content)
                os.replace(part, folder / file)
            finally:
                part.unlink(missing_ok=True)


def git_blob_id(content: bytes) -> str:
    """Return the git blob id of a content."""
    # Git uses SHA-1. It identifies the content and is not a protection against forgery.
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def _fetch(file: str, url: str) -> bytes:
    try:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            size = response.headers.get("Content-Length", "unknown number of")
            log.info("Downloading %s (%s bytes) from %s", file, size, url)
            content: bytes = response.read()
    except HTTPError as error:
        raise DataError(
            f"{file} cannot be downloaded: {url} returns HTTP {error.code}"
        ) from error
    except IncompleteRead as error:
        received = len(error.partial)
        raise DataError(
            f"The download of {file} from {url} was interrupted after {received} bytes. Try again."
        ) from error
    return content


def _unreachable(
    error: Exception, url: str, folder: Path, facts: dict[str, Any], missing: list[str]
) -> DataError:
    paths = [PurePosixPath(facts["files"][file]["path"]) for file in missing]
    homes = " and ".join(sorted({str(path.parent) for path in paths}))
    reason = getattr(error, "reason", None) or error
    return DataError(
        f"{url} cannot be reached ({reason}). Put {', '.join(missing)} into {folder}, from {homes} "
        f"in https://github.com/{facts['github']} at commit {facts['commit']}, "
        f"or set {ROOT_VARIABLE} to the folder that contains your data sets."
    )
