"""Where data lies: a folder below the data root."""

import os
from collections.abc import Sequence
from pathlib import Path

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
