"""Hostile input files are read, or refused in one sentence; none ends the process."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emea.errors import MOST_CHARACTERS

from ..sweeping import environment

LONGEST_SECONDS = 90
"""CPU seconds for one file at most."""


def read_all(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each file; after a crash, continue with the next file."""
    first = 0
    while True:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.faults.hostile_files",
                str(folder),
                str(first),
            ],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for before, after in zip(lines[::2], lines[1::2], strict=False):
            yield before | after
        if done.returncode == 0:
            return
        assert len(lines) % 2, "the process ended between two files"
        yield lines[-1] | {
            "outcome": f"the process ended with {done.returncode}",
            "seconds": 0.0,
        }
        first = lines[-1]["number"] + 1


def kind_of(outcome: str) -> str:
    """Describe an outcome without the names and numbers in it."""
    if outcome.startswith("read "):
        return "read"
    is_sentence = outcome.startswith("error: ") and len(outcome.splitlines()) == 1
    return (
        "one sentence"
        if is_sentence and len(outcome) <= MOST_CHARACTERS + 7
        else outcome
    )


@pytest.mark.slow
def test_hostile_files(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    outcomes = list(read_all(tmp_path))
    kinds = {
        f"{one['kind']} {one['name']}": kind_of(one["outcome"]) for one in outcomes
    }
    record_property(
        "faults", ("hostile files", len(kinds), dict(Counter(kinds.values())))
    )
    assert len(kinds) >= 100
    bad = {
        name: kind
        for name, kind in kinds.items()
        if kind not in ("read", "one sentence")
    }
    assert bad == {}
    assert [one["name"] for one in outcomes if one["seconds"] > LONGEST_SECONDS] == []
    secret = Path("/etc/passwd").read_text().splitlines()[0]
    assert not any(secret in one["outcome"] for one in outcomes)
    assert not list(tmp_path.parent.glob("outside*"))
