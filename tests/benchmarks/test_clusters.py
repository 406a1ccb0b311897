"""The benchmark of clusters writes each cell once for each commit."""

import json
from pathlib import Path

import pytest

from benchmarks import clusters


def test_cells_are_measured_once_and_shown(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("EMEA_DATA", str(tmp_path))
    found = {("first cell", 1): lambda data, seed: {"f1": 0.5}}
    monkeypatch.setattr(clusters, "cells", lambda: found)
    file = tmp_path / "rows.jsonl"

    for _ in range(2):
        clusters.main(["--out", str(file), "--cells", "first"])
    clusters.main(["--out", str(file), "--cells", "second"])

    (row,) = map(json.loads, file.read_text().splitlines())
    assert (row["cell"], row["seed"], row["f1"]) == ("first cell", 1, 0.5)
    assert row["command"].endswith("--cells 'first cell'")
    assert {"commit", "dirty", "machine", "cpu_count"} <= row.keys()
    capsys.readouterr()
    clusters.main(["--out", str(file), "--tables"])
    assert "| first cell | 1 | 0.500 |" in capsys.readouterr().out


@pytest.mark.parametrize("prefix", ["duplicates", "kinds", "several dbp15k", "serve"])
def test_all_kinds_of_records_have_cells(prefix: str) -> None:
    assert any(name.startswith(prefix) for name, _ in clusters.cells())
