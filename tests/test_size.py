"""The size of the project. Growth is a decision: each number here is raised by hand or not at all.

The numbers are those of today, rounded up. A new mechanism pays with one that goes.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "emea").rglob("*.py"))

MAX_LINES = {"emea": 40_000, "tests": 39_800}
MAX_MODULES = 250
MAX_FILES_PER_FOLDER = 25
MAX_LINES_PER_FUNCTION = 60
MAX_ARGUMENTS = 8
MAX_LOADED_LINES = 25_000
MAX_LOADED_MODULES = 165
"""What the default run imports of this package."""

KERNELS = ("triton_", "numba_", "compiled_loops")
"""Modules whose functions are compiled: they take arrays and numbers instead of objects."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def num_lines(paths: list[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


@pytest.mark.parametrize("folder", MAX_LINES)
def test_lines(folder: str) -> None:
    assert num_lines(list((ROOT / folder).rglob("*.py"))) <= MAX_LINES[folder]


def test_modules() -> None:
    assert len(MODULES) <= MAX_MODULES


def test_files_per_folder() -> None:
    folders = {path.parent for path in MODULES}
    sizes = {str(one.relative_to(ROOT)): len(list(one.glob("*.py"))) for one in folders}
    assert {name: size for name, size in sizes.items() if size > MAX_FILES_PER_FOLDER} == {}


def functions() -> Iterator[tuple[str, Function]]:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function) and not path.stem.startswith(KERNELS):
                yield f"{path.relative_to(ROOT)}:{node.name}", node


def test_lines_per_function() -> None:
    lengths = {name: (one.end_lineno or 0) - one.lineno + 1 for name, one in functions()}
    assert {name: size for name, size in lengths.items() if size > MAX_LINES_PER_FUNCTION} == {}


def num_arguments(function: Function) -> int:
    """The arguments that a caller gives; a method's own object is none of them."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return sum(one.arg not in ("self", "cls", "ctx") for one in given)


def test_arguments_per_function() -> None:
    numbers = {name: num_arguments(one) for name, one in functions()}
    assert {name: number for name, number in numbers.items() if number > MAX_ARGUMENTS} == {}


def imports(path: Path) -> set[str]:
    """The modules of this package that a module imports, also for type checking."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return found


def test_no_module_imports_itself_through_others() -> None:
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in MODULES
        if path.stem != "__init__"
    }
    left = {name: imports(path) & set(names) for name, path in names.items()}
    while free := {name for name, needed in left.items() if not needed & set(left)}:
        left = {name: needed for name, needed in left.items() if name not in free}
    assert left == {}


@pytest.mark.slow
def test_what_a_default_run_loads() -> None:
    code = (
        "import sys, runpy; sys.argv = ['run.py', '--cfg', 'job']\n"
        "from emea.cli.run import *; import emea.run.job, emea.run.em_run\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('emea.')), sep='\\n')"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    paths = [Path(line) for line in output.splitlines() if line.endswith(".py")]
    assert 0 < len(paths) <= MAX_LOADED_MODULES
    assert num_lines(paths) <= MAX_LOADED_LINES
