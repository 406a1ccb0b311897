"""Rules for the shape of the code. They bound what a reader must keep in mind, not its length."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "emea").rglob("*.py"))

MAX_LINES_PER_FUNCTION = 60
MAX_POSITIONAL = 5
"""Positional arguments of a function; further ones must be named by the caller."""

COMPILERS = ("compiled", "exact", "intrinsic", "triton.jit")
"""Decorators of numba and Triton: a compiled function takes arrays and numbers one by one."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def place(path: Path, node: ast.expr | ast.stmt) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def functions(path: Path) -> Iterator[Function]:
    yield from (node for node in ast.walk(parsed(path)) if isinstance(node, Function))


def is_compiled(function: Function) -> bool:
    decorators = (
        one.func if isinstance(one, ast.Call) else one
        for one in function.decorator_list
    )
    return any(ast.unparse(one) in COMPILERS for one in decorators)


def test_no_function_is_long() -> None:
    found = [
        f"{place(path, one)} {one.name}"
        for path in MODULES
        for one in functions(path)
        if not is_compiled(one)
        if (one.end_lineno or 0) - one.lineno >= MAX_LINES_PER_FUNCTION
    ]
    assert found == []


def num_positional(function: Function) -> int:
    """The arguments that a caller can give without their names."""
    given = [*function.args.posonlyargs, *function.args.args]
    return sum(one.arg not in ("self", "cls", "ctx") for one in given)


def test_few_positional_arguments() -> None:
    found = [
        f"{place(path, one)} {one.name}"
        for path in MODULES
        for one in functions(path)
        if not is_compiled(one)
        if num_positional(one) > MAX_POSITIONAL
    ]
    assert found == []


def starred_literals(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls such as ``f(*(a, b))``, which hide which argument gets which value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            starred = [one.value for one in node.args if isinstance(one, ast.Starred)]
            if any(isinstance(value, ast.Tuple | ast.List) for value in starred):
                yield node


def test_no_starred_literals_in_calls() -> None:
    found = [
        place(path, one) for path in MODULES for one in starred_literals(parsed(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("f(*(a, b))", 1),
        ("f(1, *[a])", 1),
        ("f(*a, *(x for x in y))", 0),
        ("f([*(a, b)])", 0),
    ],
)
def test_starred_literals_are_found(code: str, number: int) -> None:
    assert len(list(starred_literals(ast.parse(code)))) == number


def imports(path: Path) -> set[str]:
    """The modules of this package that a module imports, also for type checking."""
    found = set()
    for node in ast.walk(parsed(path)):
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


def test_only_the_kernels_choose_their_form() -> None:
    """Other packages call an operation; they import neither numba nor Triton nor their modules."""
    found = []
    for path in MODULES:
        if (ROOT / "emea" / "kernels") in path.parents:
            continue
        for name in imports(path):
            form = name.removeprefix("emea.kernels.")
            if form.startswith(("numba", "triton", "choice.uses", "choice.kernels_of")):
                found.append(f"{path.relative_to(ROOT)} {name}")
    assert found == []
