"""A run describes its results, its warnings, or why it failed."""

import json
from pathlib import Path

from emea.record.description import describe_run, escape_markup, markdown_table
from emea.record.run_record import RunClosing, RunHeader

HEADER = RunHeader("a" * 32, "name", "study", tags={"command": "emea run data=zh"})


def test_a_finished_run_has_its_results_and_warnings(tmp_path: Path) -> None:
    metrics = {
        "protocol": "strict",
        "initial": {"hit@1": 0.25},
        "final": {"hit@1": 0.75},
        "warnings": ["EM lowered the score."],
    }
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    text = describe_run(HEADER, RunClosing("FINISHED", 1), tmp_path)
    assert "protocol=strict: 0.2500 before EM, 0.7500 after EM." in text
    assert "- EM lowered the score." in text
    assert "emea run data=zh" in text


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    text = describe_run(HEADER, RunClosing("FAILED", 1, "UserError: no disk"), tmp_path)
    assert text.startswith("**Failed**: UserError: no disk")
    assert "Hit@1" not in text
    (tmp_path / "metrics.json").write_text("{")
    assert describe_run(HEADER, RunClosing("KILLED", 1), tmp_path).startswith("**Killed**: no ")


def test_markup_in_names_is_text() -> None:
    table = markdown_table(["a", "b"], [["<script>x</script>|y", "1 < 2 <- 3\nnext"]])
    assert table.endswith("| &lt;script>x&lt;/script>\\|y | 1 < 2 <- 3<br>next |")
    assert escape_markup("<!-- a --> <?x") == "&lt;!-- a --> &lt;?x"
