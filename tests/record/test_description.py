"""A run describes its results, its warnings, or why it failed."""

import json
from pathlib import Path

from emea.record.description import describe_run
from emea.record.run_record import RunClosing, RunHeader

HEADER = RunHeader("a" * 32, "name", "study", tags={"command": "emea run data=zh"})
SCORES = {"hit@1": 0.25, "hit@10": 0.5, "mrr": 0.3, "mr": 12.0}


def test_a_finished_run_has_its_table_warnings_and_command(tmp_path: Path) -> None:
    metrics = {
        "protocol": "strict",
        "num_links": {"test": 4},
        "initial": {**SCORES, "all_targets": SCORES},
        "final": {**SCORES, "hit@1": 0.123456, "all_targets": SCORES},
        "history": [{"iteration": 0, "validation": SCORES}],
        "warnings": ["EM lowered <b>the</b> score."],
    }
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    assert describe_run(HEADER, RunClosing("FINISHED", 1), tmp_path) == (
        "Test links, protocol=strict:\n\n"
        "| ranked among |  | Hit@1 | Hit@10 | MRR | MR |\n"
        "| --- | --- | ---: | ---: | ---: | ---: |\n"
        "| test targets | before EM | 0.2500 | 0.5000 | 0.3000 | 12.0 |\n"
        "| test targets | after EM | 0.1235 | 0.5000 | 0.3000 | 12.0 |\n"
        "| all targets | before EM | 0.2500 | 0.5000 | 0.3000 | 12.0 |\n"
        "| all targets | after EM | 0.2500 | 0.5000 | 0.3000 | 12.0 |\n\n"
        "Hit@1 on the validation links, among all targets: 0.2500\n\n"
        "Warnings:\n\n- EM lowered &lt;b>the&lt;/b> score.\n\n"
        "```\nemea run data=zh\n```"
    )


def test_a_run_without_test_links_has_no_table(tmp_path: Path) -> None:
    metrics = {
        "num_links": {"test": 0},
        "history": [{"validation_answer": {"hit@1": 0.5}}],
    }
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    text = describe_run(HEADER, RunClosing("FINISHED", 1), tmp_path)
    assert text.startswith("Hit@1 on the validation links, among all targets: 0.5000")


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    text = describe_run(HEADER, RunClosing("FAILED", 1, "UserError: no disk"), tmp_path)
    assert text.startswith("**Failed**: UserError: no disk") and "Hit@1" not in text
    (tmp_path / "metrics.json").write_text("{")
    assert describe_run(HEADER, RunClosing("KILLED", 1), tmp_path).startswith(
        "**Killed**: no "
    )
