"""CI runs all parts, prints their times, and fails if a required one fails."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
REQUIRED = (
    "test",
    "test-wheel",
    "test-wall",
    "test-records",
    "test-oldest",
    "test-interop",
    "test-browser",
)
REPORTED = ("test-speed", "test-slow")
OPTIONAL = tuple(
    f".venv/.installed-{name}" for name in ("launchers", "interop", "browser")
)


@pytest.fixture
def ci(tmp_path: Path) -> Path:
    """A copy of the script, with a ``make`` that notes what it is asked for."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "bin").mkdir()
    programs = {
        ".ci/audit": "exit 1",
        "bin/make": 'echo "$1" >> asked; [[ " $FAILING " != *" $1 "* ]]',
        "bin/chromium": "exit 0",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(ci: Path, *failing: str) -> tuple[int, list[str], str]:
    """The exit status, what was made, and what was printed; some targets fail."""
    environment = {
        **os.environ,
        "PATH": f"{ci / 'bin'}:/usr/bin:/bin",
        "FAILING": " ".join(failing),
    }
    done = subprocess.run(
        [ci / ".ci" / "run"], env=environment, capture_output=True, text=True
    )
    return done.returncode, (ci / "asked").read_text().split(), done.stdout


def test_every_part_runs_after_the_default_tests(ci: Path) -> None:
    status, asked, printed = run(ci)
    assert status == 0
    assert asked[0] == "test" and set(asked) == {*REQUIRED, *REPORTED, *OPTIONAL}
    lines = printed.partition("Time of each part")[2].splitlines()[1:]
    assert len(lines) == len(asked) + 1  # and the audit, whose failure is only reported
    assert all(" s  " in line for line in lines)
    assert "audit: see the packages above" in printed


def test_failing_default_tests_end_it(ci: Path) -> None:
    status, asked, printed = run(ci, "test")
    assert status == 1 and asked == ["test"]
    assert "failed (status 1)" in printed


@pytest.mark.parametrize("name", REQUIRED[1:])
def test_a_failing_part_fails_it_after_the_others_ran(name: str, ci: Path) -> None:
    status, asked, printed = run(ci, name)
    assert status == 1 and set(asked) == {*REQUIRED, *REPORTED, *OPTIONAL}
    assert printed.count("failed (status 1)") == 2  # the part and the audit


@pytest.mark.parametrize("name", REPORTED)
def test_failures_of_some_parts_are_only_reported(name: str, ci: Path) -> None:
    status, asked, printed = run(ci, name)
    assert status == 0 and name in asked
    assert f"{name}: see the" in printed


@pytest.mark.parametrize("name", OPTIONAL)
def test_packages_that_cannot_be_installed_do_not_fail_it(name: str, ci: Path) -> None:
    status, asked, printed = run(ci, name)
    skipped = {f"test-{name.rpartition('-')[2]}"} & {*REQUIRED}
    assert status == 0 and set(asked) == {*REQUIRED, *REPORTED, *OPTIONAL} - skipped
    assert "could not be installed" in printed


def test_the_limits_of_all_parts_are_less_than_ninety_minutes() -> None:
    words = [line.split() for line in (ROOT / ".ci" / "run").read_text().splitlines()]
    limits = [
        int(word)
        for line in words
        if "make" in line or ".ci/audit" in line
        for word in line
        if word.isdigit()
    ]
    assert len(limits) == len((*REQUIRED, *REPORTED, *OPTIONAL, "audit"))
    assert sum(limits) < 90


def test_every_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for name in REQUIRED:
        assert f"\n{name}: " in makefile
    for name in OPTIONAL:
        assert name.removeprefix(".venv/") in makefile
