"""Rules for the shape of the code. They bound what a reader must keep in mind, not its length."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import emea

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


FREE_KEYWORDS = {
    "emea/config/instantiate.py": "calls classes of the user",
    "emea/testing.py": "calls classes of the user",
    "emea/runtime/console.py": "arguments of rich.Console",
    "emea/fit/lightning_settings.py": "arguments of pl.Trainer",
    "emea/run/sweep.py": "arguments of Hydra's callbacks; content of a JSON file",
}
"""Modules whose functions take any keyword, and the reason."""


def public_functions(tree: ast.AST, is_public: bool = True) -> Iterator[Function]:
    """Functions and methods that other modules call; a class with an underscore has none."""
    for node in ast.iter_child_nodes(tree):
        name = getattr(node, "name", "")
        is_private = name.startswith("_") and not name.endswith("__")
        if isinstance(node, ast.ClassDef):
            yield from public_functions(node, is_public and not is_private)
        elif isinstance(node, Function) and is_public and not is_private:
            yield node


def takes_anything(function: Function) -> bool:
    """Whether callers can give any keyword, so that no type checker finds a wrong one."""
    further = function.args.kwarg
    if further is None:
        return False
    return further.annotation is None or ast.unparse(further.annotation) in (
        "Any",
        "object",
    )


def test_public_functions_name_their_arguments() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        for one in public_functions(parsed(path))
        if takes_anything(one) and not is_compiled(one)
    }
    assert found == set(FREE_KEYWORDS)


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("def f(**a: Any): ...", 1),
        ("class A:\n    def __init__(self, **a: object): ...", 1),
        ("async def f(**a): ...", 1),
        ("def _f(**a: Any): ...", 0),
        ("class _A:\n    def f(self, **a: Any): ...", 0),
        ("def f(**a: Unpack[Options]): ...", 0),
        ("def f(**a: int): ...", 0),
    ],
)
def test_free_keywords_are_found(code: str, number: int) -> None:
    found = public_functions(ast.parse(code))
    assert sum(map(takes_anything, found)) == number


HOMES = {name: home for home, names in emea._PUBLIC.items() for name in names}
"""The modules of the names that can be imported from ``emea``."""


def module_name(path: Path) -> str:
    """The name under which a file is imported; that of a package for its ``__init__``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(path): path for path in MODULES}


def imports_of(tree: ast.AST) -> set[str]:
    """What a module imports, also for type checking. A public name of emea means its module."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "emea":
            names = [one.name for one in node.names]
            found |= {HOMES.get(name, f"emea.{name}") for name in names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return found


@cache
def imports(path: Path) -> set[str]:
    return imports_of(parsed(path))


def needed_modules(name: str) -> set[str]:
    """The modules of this package that are loaded for a module, its packages included."""
    if name == "emea":  # its public names are loaded when they are used
        return runtime_imports(parsed(NAMES[name])) & set(NAMES)
    parts = name.split(".")
    packages = {".".join(parts[:end]) for end in range(1, len(parts))}
    return packages | (imports(NAMES[name]) & set(NAMES))


def runtime_imports(tree: ast.Module) -> set[str]:
    """What a module imports when it is loaded: at the top level, not for type checking."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= imports_of(ast.Module([node], []))
    return found


def in_circles(needed: dict[str, set[str]]) -> set[str]:
    """The modules that need themselves through others, and those that need such modules."""
    left = {name: modules - {name} for name, modules in needed.items()}
    while free := {name for name, modules in left.items() if not modules & set(left)}:
        left = {name: modules for name, modules in left.items() if name not in free}
    return set(left)


def test_no_module_imports_itself_through_others() -> None:
    assert in_circles({name: needed_modules(name) for name in NAMES}) == set()


def test_circles_through_public_names_are_found() -> None:
    code = "from emea import Aligner"
    assert imports_of(ast.parse(code)) == {"emea.aligner"}
    needed = {name: needed_modules(name) for name in NAMES}
    needed["emea.run.job"] = needed["emea.run.job"] | imports_of(ast.parse(code))
    assert {"emea.run.job", "emea.aligner"} <= in_circles(needed)


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
