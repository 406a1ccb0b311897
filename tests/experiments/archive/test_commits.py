"""The commit of each record is in the history, so that anyone can run its code."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOST = {
    "ab6c3158": {"suite", "literals"},
    "13b63d96": {"speed"},
}
"""Commits that are not in the history, and the studies that have their records."""


def history() -> set[str]:
    """The first digits of all commits up to the present one."""
    done = subprocess.run(
        ["git", "rev-list", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    shallow = (ROOT / ".git" / "shallow").exists()
    if done.returncode or shallow:
        pytest.skip("the history of the repository is not here")
    return {line[:8] for line in done.stdout.split()}


def commits(value: Any) -> Iterator[str]:
    """Each value of a key `commit`, at any depth."""
    if isinstance(value, dict):
        found = value.get("commit")
        if isinstance(found, str) and found:
            yield found[:8]
        for inner in value.values():
            yield from commits(inner)


def recorded() -> set[tuple[str, str]]:
    """Each study with each commit of its records."""
    found = set()
    for path in (ROOT / "experiments").rglob("*.json*"):
        text = path.read_text(encoding="utf-8")
        parts = text.splitlines() if path.suffix == ".jsonl" else [text]
        for part in parts:
            study = path.relative_to(ROOT / "experiments").parts[0]
            found |= {(study, commit) for commit in commits(json.loads(part))}
    return found


@pytest.mark.slow
def test_every_commit_of_a_record_is_in_the_history() -> None:
    known = history()
    found = recorded()
    assert len(found) > 20
    lost = {(study, commit) for study, commit in found if commit not in known}
    assert lost == {
        (study, commit) for commit, studies in LOST.items() for study in studies
    }


def test_nested_commits_are_found() -> None:
    assert list(commits({"tags": {"commit": "0123456789"}, "commit": None})) == [
        "01234567"
    ]
