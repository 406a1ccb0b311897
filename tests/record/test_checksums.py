"""Damage of any byte of a run folder is noticed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emea.errors import UserError
from emea.record.checked_files import read_checked_arrays, write_checked_arrays
from emea.record.run_folder import (
    read_metrics,
    read_ranks,
    read_settings,
)
from emea.record.run_record import read_run_file

from ..unsigned_files import replace_in, unsigned
from ..written_runs import write_run_folder

Read = Callable[[Path], Any]

READERS: dict[str, Read] = {
    "config.yaml": read_settings,
    "metrics.json": read_metrics,
    "run.json": read_run_file,
    "ranks.npz": lambda folder: read_ranks(folder)[0],
    "beliefs.npz": lambda folder: read_checked_arrays(folder / "beliefs.npz"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_run_folder(tmp_path / "run")
    write_checked_arrays(
        folder / "beliefs.npz", targets=np.arange(6), joint_probs=np.linspace(0, 1, 6)
    )
    return folder


def same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether all expected values were read."""
    return all(key in found and np.array_equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize("name", READERS)
def test_a_changed_byte_is_noticed_or_has_no_effect(folder: Path, name: str) -> None:
    path, read = folder / name, READERS[name]
    whole, expected = path.read_bytes(), read(folder)
    num_noticed = 0
    places = range(0, len(whole), max(1, len(whole) // 120))
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << (place % 7)
        path.write_bytes(changed)
        try:
            found = read(folder)
        except UserError as error:
            assert str(path) in str(error) and "Restore the file or run it again." in str(error)
            num_noticed += 1
        else:
            assert same(found, expected), (name, place)
    assert num_noticed > len(places) / 2


@pytest.mark.parametrize("name", READERS)
def test_a_truncated_file_is_noticed(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    for size in (len(whole) // 4, len(whole) // 2, whole.rindex(b"\n", 0, len(whole) - 3) + 1):
        (folder / name).write_bytes(whole[:size])
        with pytest.raises(UserError, match=f"{name} (is damaged|cannot be read): .* run it again"):
            READERS[name](folder)


@pytest.mark.parametrize("name", ["config.yaml", "metrics.json", "run.json"])
def test_files_of_earlier_versions_have_no_checksum(folder: Path, name: str) -> None:
    expected = READERS[name](folder)
    (folder / name).write_bytes(unsigned(folder / name))
    assert "sha256" not in (folder / name).read_text()
    assert READERS[name](folder) == expected


def test_a_user_can_edit_the_configuration(folder: Path) -> None:
    path = folder / "config.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: 1"))
    with pytest.raises(UserError, match="If you edited it, remove its first line"):
        read_settings(folder)
    path.write_text(path.read_text().split("\n", 1)[1])
    assert read_settings(folder)["seed"] == 1
    replace_in(path, "seed: 1", "seed: 2")
    assert read_settings(folder)["seed"] == 2
