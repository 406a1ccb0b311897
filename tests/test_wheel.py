"""The built wheel in a new environment, used from another folder as the README describes."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples"
TINY = ("variant=tiny", "em=none", "rule=none")

pytestmark = pytest.mark.install


def called(*command: str | Path, cwd: Path) -> str:
    """What a command prints; it sees nothing of this checkout."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "MLFLOW_TRACKING_URI")
    environment = {
        name: value for name, value in os.environ.items() if name not in hidden
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    called(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        folder,
        ROOT,
        cwd=folder,
    )
    (found,) = folder.glob("emea-*.whl")
    return found


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment in which only the wheel was installed."""
    environment = tmp_path_factory.mktemp("environment")
    called(sys.executable, "-m", "venv", environment, cwd=environment)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "-q"]
    called(*pip, "-c", ROOT / "constraints.txt", wheel, cwd=environment)
    return environment / "bin"


def test_the_wheel_holds_what_it_needs(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {
        f"emea/{path.relative_to(ROOT)}" for path in (ROOT / "conf").rglob("*.yaml")
    }
    assert shipped <= names
    assert {
        "emea/py.typed",
        "emea/results/page.css",
        "emea/data/sources/sources.json",
    } <= names
    others = ("tests/", "experiments/", "benchmarks/", "conf/", "emea/experiments/")
    assert not [name for name in names if name.startswith(others)]


def test_the_python_block_of_the_readme(programs: Path, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, re.S)
    (block,) = (text for text in blocks if "Aligner" in text)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "block.py").write_text(block)
    printed = called(programs / "python", "block.py", cwd=tmp_path)
    assert "http://karte.example.org/ort/" in printed


def test_the_commands(programs: Path, tmp_path: Path) -> None:
    emea = programs / "emea"
    files = [
        EXAMPLES / "atlas.nt",
        EXAMPLES / "karte.ttl",
        "--links",
        EXAMPLES / "seeds.tsv",
    ]
    aligned = called(emea, "align", *files, cwd=tmp_path)
    assert "Matched 44 of 46 source entities" in aligned  # 20 of 66 are given
    assert "synthetic" in called(emea, "data", "--help", cwd=tmp_path)
    ran = called(emea, "run", *TINY, "hydra.run.dir=run", cwd=tmp_path)
    assert "protocol=strict" in ran
    called(emea, "run", "-m", *TINY, "ratio=0.1,0.2", cwd=tmp_path)
    assert "alignment.nt" in called(
        emea, "predict", "run", "--formats", "nt", cwd=tmp_path
    )
    assert "→" in called(emea, "explain", "run", "--entity", "3", cwd=tmp_path)
    assert "3 runs: wrote" in called(
        emea, "report", "--runs", "run", "multirun", cwd=tmp_path
    )
    assert (tmp_path / "report" / "report.html").is_file()
    assert "already there 3" in called(emea, "sync", "run", "multirun", cwd=tmp_path)
