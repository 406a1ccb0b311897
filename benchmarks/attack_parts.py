"""What attacks consist of: hostile content, and changes of the files of runs.

``python -m benchmarks.attacks`` describes how they are tried.
"""

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from emea.record.checked_files import COMMENT, KEY

Change = Callable[[Path], object]


class Attack(NamedTuple):
    """A change of the place with all files, and the command that must survive it.

    Args:
        name: What is changed.
        change: Changes the files.
        command: The command.
        is_refused: Whether the command must fail, because it needs what was changed.
        before: Changes the process.
    """

    name: str
    change: Change
    command: str
    is_refused: bool = False
    before: Callable[[], object] = lambda: None


def unsigned(path: Path) -> bytes:
    """Return the content of a YAML or JSON file of a run without its checksum."""
    content = path.read_bytes()
    if path.suffix == ".yaml":
        return COMMENT.sub(b"", content, count=1)
    return json.dumps(
        {key: one for key, one in json.loads(content).items() if key != KEY}
    ).encode()


def nothing(place: Path) -> None:
    """Leave the files unchanged."""


def rewritten(name: str, old: str, new: str) -> Change:
    """Replace text in a file of a run, as somebody who removes the checksum."""

    def change(place: Path) -> None:
        text = unsigned(place / name).decode()
        assert old in text, (name, old)
        (place / name).write_text(text.replace(old, new, 1))

    return change


def with_values(name: str, /, **values: Any) -> Change:
    """Set values of a JSON file; a dot in a key separates levels."""

    def change(place: Path) -> None:
        content = json.loads(unsigned(place / name))
        for key, value in values.items():
            node, (*parts, last) = content, key.split("__")
            for part in parts:
                node = node[part]
            node[last] = value
        (place / name).write_text(json.dumps(content))

    return change


def written(name: str, content: bytes | str) -> Change:
    """Write a file."""

    def change(place: Path) -> None:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(
            content.encode() if isinstance(content, str) else content
        )

    return change


def replaced(name: str, make: Callable[[Path, Path], object]) -> Change:
    """Replace a file or folder by something else."""

    def change(place: Path) -> None:
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(
            True
        )
        make(path, place)

    return change


def sparse(path: Path, place: Path) -> None:
    """Make a file of 100 GiB that takes no space."""
    with path.open("wb") as file:
        file.truncate(100 << 30)


KINDS: dict[str, Callable[[Path, Path], object]] = {
    "pipe": lambda path, place: os.mkfifo(path),
    "endless device": lambda path, place: path.symlink_to("/dev/zero"),
    "link to a secret": lambda path, place: path.symlink_to(
        place / "victim" / "secret.txt"
    ),
    "folder": lambda path, place: path.mkdir(),
    "100 GiB": sparse,
    "link to a folder": lambda path, place: path.symlink_to(place / "victim"),
    "dangling link": lambda path, place: path.symlink_to(place / "victim" / "new"),
}


def npz(**members: bytes) -> bytes:
    """Return an archive of arrays with any content."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def npy(
    descr: str, shape: str, content: bytes = b"", version: bytes = b"\x01\x00"
) -> bytes:
    """Return an array file with any header."""
    header = (
        f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    )
    size = len(header).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + version + size + header + content
