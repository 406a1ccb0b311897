"""The lock keeps others out and falls with its holder."""

from pathlib import Path

import pytest

from emea.record.file_lock import file_lock

pytest.importorskip("fcntl")


def test_second_holder_waits_in_vain(tmp_path: Path) -> None:
    with (
        file_lock(tmp_path / "lock", timeout=0),
        pytest.raises(TimeoutError, match="stayed locked"),
        file_lock(tmp_path / "lock", timeout=0.1),
    ):
        pass


def test_lock_is_free_again(tmp_path: Path) -> None:
    for _ in range(2):
        with file_lock(tmp_path / "new" / "lock", timeout=0):
            pass
