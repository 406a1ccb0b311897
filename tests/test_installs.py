"""Every documented installation can be resolved, and so can every extra without constraints."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
EXTRAS = PROJECT["optional-dependencies"]


def documented() -> set[str]:
    """The arguments of ``pip install`` that install a clone, without ``-e``, which changes it."""
    texts = (path.read_text(encoding="utf-8") for path in PAGES)
    found = (
        one for text in texts for one in re.findall(r"pip install ([^`\n#|]+)", text)
    )
    return {
        one.strip().replace("-e ", "") for one in found if re.search(r"\.(\[|$|')", one)
    }


EACH = [
    f"{pinned}'.[{extra}]'"
    for extra in EXTRAS
    for pinned in ("", "-c constraints.txt ")
]
COMMANDS = sorted({*documented(), *EACH})


def test_the_pages_install_what_exists() -> None:
    named = {name for one in documented() for name in re.findall(r"\[(\w+)\]", one)}
    assert {"joblib", "slurm", "ray", "optuna"} <= named <= set(EXTRAS)
    assert all(
        EXTRAS[name] for name in named
    )  # an empty extra serves earlier commands only


@pytest.mark.install
@pytest.mark.parametrize("arguments", COMMANDS)
def test_an_installation_can_be_resolved(arguments: str) -> None:
    words = [word.strip("'\"") for word in arguments.split()]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", *words]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
