"""Measurements are kept as lines by name."""

import json
from pathlib import Path

import pytest

from emea.errors import DataError
from experiments.__main__ import main
from experiments.archive.measurements import (
    MEASUREMENTS_FILE,
    add_measurements,
    read_measurements,
)


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_measurements_are_sorted_and_replaced_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "speed"
    assert read_measurements(folder) == {}
    files = [
        written(tmp_path / f"{name}.json", {"s": name})
        for name in ("whole_b", "parts_a")
    ]
    assert add_measurements(folder, files) == ["whole_b", "parts_a"]
    assert list(read_measurements(folder)) == ["parts_a", "whole_b"]
    assert read_measurements(folder, "whole_") == {"whole_b": {"s": "whole_b"}}
    add_measurements(folder, [written(tmp_path / "whole_b.json", {"s": 2, "é": [1]})])
    assert read_measurements(folder) == {
        "parts_a": {"s": "parts_a"},
        "whole_b": {"s": 2, "é": [1]},
    }


@pytest.mark.parametrize("line", ["{", "[]", '{"s": 1}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / MEASUREMENTS_FILE).write_text('{"name": "a"}\n' + line + "\n")
    with pytest.raises(DataError, match=r"measurements\.jsonl, line 2 is damaged"):
        read_measurements(tmp_path)


def test_files_are_added_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "experiments.archive.record_command.EXPERIMENTS", tmp_path / "experiments"
    )
    written(tmp_path / "compare_zh.json", {"s": 1})
    assert main(["record", "bench", "compare_zh.json"]) == 0
    assert read_measurements(tmp_path / "experiments" / "speed") == {
        "compare_zh": {"s": 1}
    }
    assert main(["record", "bench", "nothing.json"]) == 1
    assert "nothing.json cannot be read" in capsys.readouterr().err
    (tmp_path / "text.json").write_text("seconds: 3")
    assert main(["record", "bench", "text.json"]) == 1
    assert "text.json is not a measurement" in capsys.readouterr().err
