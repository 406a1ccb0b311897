"""Where data sets are on disk, and downloads from pinned sources."""

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, IncompleteRead
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from emea.errors import DataError

ROOT_VARIABLE = "EMEA_DATA"


def locate(folder: str | Path, root: str | Path | None = None) -> Path:
    """The folder of a data set.

    Args:
        folder: relative to the root, or absolute.
        root: the data root; by default what ``EMEA_DATA`` says, else ``data``.
    """
    root = root or os.environ.get(ROOT_VARIABLE) or "data"
    return Path(root).expanduser() / Path(folder).expanduser()


def require_files(path: Path, required: Sequence[str], content: str) -> None:
    """Refuse a folder that lacks required files.

    Args:
        path: the folder.
        required: files that must exist.
        content: what the folder should hold, in words.
    """
    if not path.is_dir():
        problem = "does not exist"
    elif missing := [file for file in required if not (path / file).is_file()]:
        problem = f"has no {', '.join(missing)}"
    else:
        return
    raise DataError(
        f"folder {path} {problem}: fill it with {content}, "
        f"or set {ROOT_VARIABLE} to the folder that holds your data sets"
    )


log = logging.getLogger(__name__)

GITHUB_RAW = "https://raw.githubusercontent.com"
SOURCES = Path(__file__).with_name("sources.json")
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Source:
    """A data set's files in a repository at one commit.

    Args:
        github: owner and name of the repository.
        commit: the commit that is pinned.
        paths: for each file its path in the repository.
        blobs: for each file the git id of its content.
    """

    github: str
    commit: str
    paths: Mapping[str, str]
    blobs: Mapping[str, str]


def load_source(key: str) -> Source:
    """What ``sources.json`` says about a data set."""
    sources = json.loads(SOURCES.read_text(encoding="utf-8"))
    if key not in sources:
        raise DataError(f"there is no download source {key!r}, only {', '.join(sources)}")
    entry = sources[key]
    paths = {file: facts["path"] for file, facts in entry["files"].items()}
    blobs = {file: facts["git_blob_sha1"] for file, facts in entry["files"].items()}
    return Source(entry["github"], entry["commit"], paths, blobs)


def ensure_downloaded(folder: Path, source: str, base_url: str = GITHUB_RAW) -> None:
    """Fetch the files of a data set that a folder lacks.

    Files that are there are neither checked nor touched: they may be the user's own variant.
    A fetched file is compared with its pinned git id before it gets its name.

    Args:
        folder: where the files belong.
        source: a key of ``sources.json``.
        base_url: a server with GitHub's layout of raw files.

    Raises:
        DataError: a file could not be fetched or is not the pinned one.
    """
    facts = load_source(source)
    missing = [file for file in facts.paths if not (folder / file).is_file()]
    for position, file in enumerate(missing):
        url = f"{base_url}/{facts.github}/{facts.commit}/{quote(facts.paths[file])}"
        try:
            content = _fetch(file, url)
        except (OSError, HTTPException, ValueError) as error:
            raise _unreachable(error, url, folder, facts, missing[position:]) from error
        _check(file, url, content, facts.blobs[file])
        _place(folder / file, content)


def git_blob_id(content: bytes) -> str:
    """The id git gives a file with this content."""
    # Git's own naming of contents, not a safeguard against forgery.
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def _fetch(file: str, url: str) -> bytes:
    try:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            size = response.headers.get("Content-Length", "unknown number of")
            log.info("downloading %s (%s bytes) from %s", file, size, url)
            content: bytes = response.read()
    except HTTPError as error:
        raise DataError(f"{file} cannot be downloaded: {url} answers {error.code}") from error
    except IncompleteRead as error:
        received = len(error.partial)
        raise DataError(
            f"the download of {file} from {url} broke off after {received} bytes: try again"
        ) from error
    return content


def _unreachable(
    error: Exception, url: str, folder: Path, facts: Source, missing: list[str]
) -> DataError:
    homes = " and ".join(sorted({str(PurePosixPath(facts.paths[file]).parent) for file in missing}))
    reason = getattr(error, "reason", None) or error
    return DataError(
        f"{url} cannot be reached ({reason}): fill {folder} with {', '.join(missing)} from {homes} "
        f"in https://github.com/{facts.github} at commit {facts.commit}, "
        f"or set {ROOT_VARIABLE} to the folder that holds your data sets"
    )


def _check(file: str, url: str, content: bytes, expected: str) -> None:
    found = git_blob_id(content)
    if found != expected:
        raise DataError(
            f"{file} from {url} is not the pinned file: its git id is {found}, expected {expected}"
        )


def _place(target: Path, content: bytes) -> None:
    # One name per process, so that parallel jobs cannot write into each other's file.
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        os.replace(part, target)
    except OSError as error:
        # A job that finished first swept our part away, and left the same content.
        if not target.is_file():
            raise DataError(f"{target} cannot be written: {error.strerror}") from error
    finally:
        _sweep(target)


def _sweep(target: Path) -> None:
    """Remove what this or an interrupted download left of a file."""
    for leftover in target.parent.glob(f"{target.name}.*part"):
        with suppress(OSError):
            leftover.unlink()
