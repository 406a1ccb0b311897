"""The rows of cells without links, and the tables that are written from them."""

import json
from pathlib import Path

import pytest

from benchmarks import decoys
from benchmarks.decoys import CELLS, Cell, numbers, write_tables
from emea.errors import UserError


def write_run(folder: Path) -> None:
    heading = "source\ttarget\tprobability\n"
    answers = "a0\tb0\t0.95\na1\tb9\t0.92\na2\tb2\t1.0\na3\tb3\t0.6\n"
    (folder / "alignment.tsv").write_text(heading + answers)
    (folder / "unmatched.tsv").write_text(heading + "a4\tb4\t0.2\na5\t\t0.0\n")
    export = {"num_answered": 3, "num_unmatched": 2}
    export |= {"reached": None, "precision_low": None}
    share = {"share": 0.8, "share_low": 0.7, "share_high": 0.9}
    metrics = {"export": export, "decoys": {**share, "expected_precision": 0.9}}
    (folder / "metrics.json").write_text(json.dumps(metrics))


def test_best_candidates_are_judged_without_given_links(tmp_path: Path) -> None:
    write_run(tmp_path)
    # a2 is given, a7 is not in the files, and a3 has no counterpart
    gold = {("a0", "b0"), ("a1", "b1"), ("a2", "b2"), ("a4", "b4"), ("a7", "b7")}

    found = numbers(tmp_path, gold, {("a2", "b2")}, is_complete=True)

    assert found["answers"] == 3
    assert (found["precision"], found["recall"]) == (0.3333, 0.3333)
    assert (found["band_answers"], found["band_right"]) == (2, 0.5)
    assert found["true_share"] == 0.6 and found["covers"] is False
    only_linked = numbers(tmp_path, gold, {("a2", "b2")}, is_complete=False)
    assert only_linked["answers"] == 2 and only_linked["true_share"] is None


def test_tables_are_written_between_their_marks(tmp_path: Path) -> None:
    write_run(tmp_path)
    row = numbers(tmp_path, {("a0", "b0")}, set(), is_complete=True)
    row |= {"cell": "films", "cpu_seconds": 3.1, "measured": "answer", "links": 0}
    page = tmp_path / "page.md"
    marks = "".join(f"<!-- {kind} -->old<!-- end -->\n" for kind in decoys.HEADS)
    page.write_text(f"# Page\n{marks}tail\n")

    write_tables(page, [row, {**row, "cell": "some deleted", "measured": "share"}])

    text = page.read_text()
    assert "old" not in text and text.endswith("tail\n")
    assert "| films | 4 | 0.250 |" in text
    assert "| some deleted | 4 | 0.200 | 0.800 | 0.700 to 0.900 (missed) |" in text


def test_cells_have_names_of_their_own_and_need_committed_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    assert Cell("remakes", 100, 0.9).name == "remakes 100 links target 0.9"
    monkeypatch.setenv("EMEA_COMMIT", "0" * 40)
    monkeypatch.setenv("EMEA_DIRTY", "true")
    with pytest.raises(UserError, match="working tree is dirty"):
        decoys.main([str(tmp_path), "--file", str(tmp_path / "rows")])
