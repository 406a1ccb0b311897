"""Bad command lines end in one sentence, before torch is loaded."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .bad_command_lines import COMMAND_LINES, prepare

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 1100
"""Characters of a sentence at most, with its prefix."""


def kind_of(outcome: dict[str, Any]) -> str:
    """Describe how a command line ended."""
    lines = outcome["error"].strip().splitlines()
    if outcome["failure"]:
        return outcome["failure"]
    if outcome["status"] not in (1, 2) or not lines:
        return f"status {outcome['status']}, {len(lines)} lines of errors"
    if "Traceback" in outcome["error"] or len(lines[-1]) > LONGEST:
        return "a traceback or an endless line"
    if lines[0].startswith("usage: emea"):
        return "usage and one sentence"
    return "one sentence" if len(lines) == 1 else f"{len(lines)} lines"


@pytest.mark.slow
def test_bad_command_lines(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    assert len(set(COMMAND_LINES)) == len(COMMAND_LINES)
    prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    environment = {key: value for key, value in os.environ.items() if key != "EMEA_DATA"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.bad_command_lines"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert [outcome["line"] for outcome in outcomes] == list(COMMAND_LINES)
    kinds = {outcome["line"]: kind_of(outcome) for outcome in outcomes}
    counts = Counter(kinds.values())
    record_property("faults", ("bad command lines", len(outcomes), dict(counts)))
    good = ("one sentence", "usage and one sentence")
    assert {line[:100]: kind for line, kind in kinds.items() if kind not in good} == {}
    # Hydra creates its folder before the data is read, so damaged data leaves one with its files
    left = {path.name for path in tmp_path.rglob("*") if path not in before and path.is_file()}
    assert left <= {"config.yaml", "hydra.yaml", "overrides.yaml", "run.log"}, "no run was started"
