"""Bad command lines end in one sentence, before torch is loaded."""

import json
import os
import re
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


NOTICE = re.compile(
    r"(^|INFO\s+)Opening the store |WARNING\s+Both sides are the same file: "
)
"""Lines that may come before an error: what takes seconds, and what the files look like."""


def kind_of(outcome: dict[str, Any]) -> str:
    """Describe how a command line ended."""
    lines = [
        line
        for line in outcome["error"].strip().splitlines()
        if not NOTICE.search(line)
    ]
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
def test_bad_command_lines(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert len(set(COMMAND_LINES)) == len(COMMAND_LINES)
    prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    environment = {
        key: value for key, value in os.environ.items() if key != "EMEA_DATA"
    }
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
    left = {
        path.name
        for path in tmp_path.rglob("*")
        if path not in before and path.is_file()
    }
    assert left <= {"config.yaml", "hydra.yaml", "overrides.yaml", "run.log"}, (
        "no run was started"
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("error: There is no key a.\n", "one sentence"),
        (
            "12:00:00 WARNING Both sides are the same file: a.nt\nerror: no.\n",
            "one sentence",
        ),
        ("Opening the store x://y\nerror: no.\n", "one sentence"),
        ("12:00:00 WARNING something else\nerror: no.\n", "2 lines"),
        ("Opening the store x://y\n", "status 1, 0 lines of errors"),
    ],
)
def test_only_known_lines_come_before_an_error(error: str, kind: str) -> None:
    assert kind_of({"error": error, "status": 1, "failure": None}) == kind
