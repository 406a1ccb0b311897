"""Fixtures of the data tests."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

WriteFiles = Callable[[Mapping[str, str | bytes]], Path]


@pytest.fixture
def write_files(tmp_path: Path) -> WriteFiles:
    """Writes files, given by name and content, into a folder and returns it."""

    def write(files: Mapping[str, str | bytes]) -> Path:
        for name, content in files.items():
            path = tmp_path / "pair" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(
                content if isinstance(content, bytes) else content.encode()
            )
        return tmp_path / "pair"

    return write


@pytest.fixture
def real_folder() -> Callable[[str], Path]:
    """Finds a folder of real data or skips the test."""
    given = os.environ.get("EMEA_DATA") or REPOSITORY.parent / "shared" / "data"
    root = Path(given).resolve()

    def find(folder: str) -> Path:
        if not (root / folder).is_dir():
            pytest.skip(f"no {folder} in {root}")
        return root / folder

    return find
