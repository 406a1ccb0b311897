"""The GPU tests run with one command on a machine that lacks Hydra, MLflow and pyoxigraph."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

BARE = ("hydra", "omegaconf", "mlflow", "pyoxigraph")
"""Packages that the GPU tests of kernels, encoders and fits do not need."""

WHOLE_RUNS = {"tests/run/test_job.py", "tests/kernels/test_choice.py"}
"""Files with GPU tests of whole runs, which need Hydra."""


def module_file(name: str) -> Path | None:
    """The file of a module of this repository."""
    path = ROOT.joinpath(*name.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def on_import(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when a module is imported: not those of functions or for types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        elif not isinstance(child, ast.FunctionDef):
            yield from on_import(child)


@cache
def imported(file: Path) -> set[str]:
    """The full names of what a file imports."""
    names: set[str] = set()
    for node in on_import(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
            continue
        folder = file.relative_to(ROOT).parts[: -node.level] if node.level else ()
        base = ".".join((*folder, *filter(None, [node.module])))
        names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return names


def needed_packages(file: Path) -> set[str]:
    """The packages of others that a test file imports, directly or through modules of this one."""
    found: set[str] = set()
    conftests = [
        folder / "conftest.py" for folder in file.parents if ROOT in folder.parents
    ]
    waiting = [file, *(path for path in conftests if path.is_file())]
    seen = set(waiting)
    while waiting:
        for name in imported(waiting.pop()):
            parts = name.split(".")
            if parts[0] not in ("emea", "tests"):
                found.add(parts[0])
                continue
            parents = (
                module_file(".".join(parts[:count]))
                for count in range(1, len(parts) + 1)
            )
            new = {path for path in parents if path} - seen
            seen |= new
            waiting += new
    return found


def test_gpu_tests_of_kernels_encoders_and_fits_import_neither_hydra_nor_mlflow() -> (
    None
):
    files = [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if "mark." + "gpu" in path.read_text(encoding="utf-8")
    ]
    assert len(files) > 20
    need = {
        str(path.relative_to(ROOT)) for path in files if needed_packages(path) & {*BARE}
    }
    assert need == WHOLE_RUNS


def pytest_on(
    files: dict[str, str], folder: Path, marker: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder with these files, where Hydra seems to be missing."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")
    (folder / "conftest.py").write_text(
        "import sys\nsys.modules['hydra'] = None\n"
        "from tests.missing_packages import pytest_configure\n"
    )
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # Hydra has a plugin
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        marker,
        "-ra",
        "--import-mode=importlib",
    ]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


GPU_TEST = "import pytest\n\n@pytest.mark.gpu\ndef test_it(): pass\n"


def test_files_that_need_a_missing_package_are_skipped_with_a_reason(
    tmp_path: Path,
) -> None:
    files = {
        "test_kernel.py": GPU_TEST,
        "test_run.py": f"import hydra.core\n{GPU_TEST}",
        "store/conftest.py": "from hydra import compose\n",
        "store/test_store.py": GPU_TEST,
    }
    done = pytest_on(files, tmp_path, "gpu")
    assert "1 passed, 2 skipped" in done.stdout, done.stdout
    assert done.returncode == 0
    assert "hydra not installed" in done.stdout
    done = pytest_on({}, tmp_path, "not gpu")
    assert "2 errors" in done.stdout and done.returncode == 2, done.stdout


def test_other_errors_of_a_file_are_not_hidden(tmp_path: Path) -> None:
    done = pytest_on({"test_kernel.py": f"1 / 0\n{GPU_TEST}"}, tmp_path, "gpu")
    assert "ZeroDivisionError" in done.stdout and done.returncode == 2, done.stdout


@pytest.mark.slow
def test_the_gpu_tests_are_collected_on_a_bare_machine(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nfor name in {BARE}:\n    sys.modules[name] = None\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "--collect-only", "-q"]
    done = subprocess.run(
        [*command, "-p", "_hypothesis_pytestplugin"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    number = int(done.stdout.strip().splitlines()[-1].partition("/")[0])
    assert number >= 226
