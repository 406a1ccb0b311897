"""Where data is looked for."""

from pathlib import Path

import pytest

from emea.data.sources.download import locate, require_files
from emea.errors import DataError


def test_root_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMEA_DATA", "/elsewhere")
    assert locate("a/b") == Path("/elsewhere/a/b")
    assert locate("a/b", "/top") == Path("/top/a/b")
    assert locate("/absolute") == Path("/absolute")


def test_default_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMEA_DATA", raising=False)
    assert locate("a") == Path("data/a")


def test_missing_folder_and_file(tmp_path: Path) -> None:
    ending = "Put x and y there, or set EMEA_DATA to the folder that contains your data sets."
    with pytest.raises(DataError) as error:
        require_files(tmp_path / "none", ["x"], "x and y")
    assert str(error.value) == f"The folder {tmp_path / 'none'} does not exist. {ending}"
    (tmp_path / "x").touch()
    require_files(tmp_path, ["x"], "x and y")
    with pytest.raises(DataError) as error:
        require_files(tmp_path, ["x", "y"], "x and y")
    assert str(error.value) == f"The folder {tmp_path} has no y. {ending}"
