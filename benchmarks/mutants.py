"""Measures whether the tests notice small changes of the critical code (mutation testing).

    python -m benchmarks mutants [--count N] [--seed N] [--workers N] [--only PATH]
        [--log FILE] [--json FILE]

Each mutant changes one place: a comparison, an operator, a constant, or a name by its counterpart,
such as ``source`` by ``target``. It is killed if a test of its package fails. Survivors are printed
with their line. Mutants that change no result are listed in ``equivalent_mutants.yaml`` with the
reason, and are left out. With ``--log``, a repetition tests only what the file does not contain.
"""

import ast
import hashlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue

import yaml

from benchmarks.command import bench_parser, write_numbers
from emea.cli.arguments import AT_LEAST_ONE, number_in
from emea.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.yaml")

CRITICAL = {
    "emea/em": ("tests/em",),
    "emea/rules": ("tests/rules",),
    "emea/evaluation": ("tests/evaluation",),
    "emea/matching": ("tests/matching",),
    "emea/answer": ("tests/answer",),
    "emea/data/formats/ontology.py": ("tests/data/formats/test_ontology.py",),
    "emea/data/split.py": ("tests/data",),
    "emea/data/protocol.py": ("tests/data", "tests/run/test_wall.py"),
    "emea/divide": ("tests/divide",),
    "emea/fit/self_training.py": ("tests/fit/test_self_training.py",),
    "emea/literals": ("tests/literals",),
    "emea/run/method_choice.py": ("tests/run/test_method_choice.py",),
    "emea/run/warm_start.py": ("tests/run/test_warm_start.py", "tests/update"),
}
"""The critical code, and the tests that must notice a change of it."""

ON_A_GPU = ("triton_", "scanned_search")
"""Modules that only run on a GPU."""

CPU_SECONDS = 300
"""A mutant whose tests compute longer is killed: it does not end. A busy machine does not count."""

TIMEOUT_SECONDS = 3600
"""The same for tests that wait."""

COUNTERPARTS = (
    ("source", "target"),
    ("sources", "targets"),
    ("num_source", "num_target"),
    ("in_all", "in_pool"),
    ("beliefs", "offered"),
    ("train", "validation"),
    ("max", "min"),
    ("heads", "tails"),
    ("forth", "back"),
    ("log", "log1p"),
    ("clamped", "excluding"),
)
OTHER_NAME = {one: other for pair in COUNTERPARTS for one, other in (pair, pair[::-1])}

OTHER_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OTHER_OPERATOR: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """A module with one change.

    Args:
        path: The module, relative to the repository.
        line: The number of the changed line.
        code: The statement before the change, in one line, without what is inside of a block.
        before: The changed expression, and ``after`` what replaces it.
        after: The replacement.
        text: The text of the changed module.
    """

    path: str
    line: int
    code: str
    before: str
    after: str
    text: str

    @property
    def name(self) -> str:
        """The change in one line, without its line number."""
        return f"{self.path}: {self.before} -> {self.after} in {self.code}"

    @property
    def key(self) -> str:
        """The change in this version of the module."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return f"{self.name} ({digest[:12]})"


def main(arguments: Sequence[str]) -> None:
    """Test the mutants and print the survivors."""
    parser = bench_parser("mutants", __doc__)
    whole = number_in(AT_LEAST_ONE, int)
    parser.add_argument(
        "--count", type=whole, default=200, help="mutants that are drawn"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    parser.add_argument(
        "--workers", type=whole, default=2, help="tests that run side by side"
    )
    parser.add_argument(
        "--only", default="", help="draw from modules whose path contains this"
    )
    parser.add_argument(
        "--log", type=Path, help="file to which each result is appended"
    )
    options = parser.parse_args(arguments)
    drawn = drawn_mutants(options.count, options.seed, options.only)
    start = time.perf_counter()
    log = (
        options.log.read_text(encoding="utf-8")
        if options.log and options.log.exists()
        else ""
    )
    killed: dict[str, bool] = dict(map(json.loads, log.splitlines()))
    remaining = [mutant for mutant in drawn if mutant.key not in killed]
    for number, (mutant, is_killed) in enumerate(tested(remaining, options.workers), 1):
        killed[mutant.key] = is_killed
        if options.log:
            with options.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps([mutant.key, is_killed]) + "\n")
        if number % 20 == 0:
            print(f"{number} of {len(remaining)} mutants tested", flush=True)
    survivors = [mutant for mutant in drawn if not killed[mutant.key]]
    for mutant in survivors:
        print(
            f"survived: {mutant.path}:{mutant.line}: {mutant.before} -> {mutant.after}"
        )
    print(f"{len(drawn) - len(survivors)} of {len(drawn)} mutants killed")
    numbers = {"mutants": len(drawn), "survived": len(survivors)}
    numbers["seconds"] = round(time.perf_counter() - start)
    write_numbers(options.json, numbers)


def drawn_mutants(count: int, seed: int, only: str = "") -> list[Mutant]:
    """Draw mutants of the critical code at random, without those that change no result."""
    equivalent = equivalent_names()
    every = [one for one in all_mutants(only) if one.name not in equivalent]
    return random.Random(seed).sample(every, min(count, len(every)))


def equivalent_names() -> set[str]:
    """Return the names of the mutants that change no result."""
    return set(yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8")) or ())


def all_mutants(only: str = "") -> Iterator[Mutant]:
    """Return all mutants of the critical modules whose path contains a text."""
    modules = sorted(path for place in CRITICAL for path in modules_of(ROOT / place))
    for path in modules:
        name = path.relative_to(ROOT).as_posix()
        if only in name:
            yield from mutants_of(name, path.read_text(encoding="utf-8"))


def modules_of(place: Path) -> list[Path]:
    """Return the modules of a folder that run on a CPU, or the module itself."""
    found = [place] if place.is_file() else list(place.glob("*.py"))
    return [path for path in found if not path.name.startswith((*ON_A_GPU, "__"))]


def mutants_of(path: str, text: str) -> Iterator[Mutant]:
    """Return all mutants of a module."""
    content, start_of = text.encode(), [0]
    for line in content.splitlines(keepends=True):
        start_of.append(start_of[-1] + len(line))
    for node, statement in expressions(ast.parse(text)):
        start = start_of[node.lineno - 1] + node.col_offset
        end = start_of[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        for after in changes(node):
            whole = (
                after
                if isinstance(node, ast.Attribute | ast.Constant)
                else f"({after})"
            )
            changed = content[:start] + whole.encode() + content[end:]
            code = one_line(statement)
            yield Mutant(
                path, node.lineno, code, ast.unparse(node), after, changed.decode()
            )


@cache
def one_line(statement: ast.stmt | None) -> str:
    """Return a statement in one line, independent of its layout; of a block, the first line."""
    return ast.unparse(statement).splitlines()[0] if statement else ""


def expressions(
    node: ast.AST, inside: bool = False, statement: ast.stmt | None = None
) -> Iterator[tuple[ast.expr, ast.stmt | None]]:
    """Return the expressions inside of functions, each with the statement that it belongs to.

    Annotations, messages, the log, and checks that two lists have one length are left out.
    """
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.arguments):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(
        ("logger.", "warn")
    ):
        return
    if isinstance(node, ast.stmt):
        statement = node
    if isinstance(node, ast.expr) and inside:
        yield node, statement
    inside = inside or isinstance(node, ast.FunctionDef)
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from expressions(child, inside, statement)


def changes(node: ast.AST) -> Iterator[str]:
    """Return what may replace an expression."""
    match node:
        case ast.Compare(ops=[comparison]) if type(comparison) in OTHER_COMPARISON:
            compared = OTHER_COMPARISON[type(comparison)]()
            yield ast.unparse(ast.Compare(node.left, [compared], node.comparators))
        case ast.BinOp(op=operator) if type(operator) in OTHER_OPERATOR:
            yield ast.unparse(
                ast.BinOp(node.left, OTHER_OPERATOR[type(operator)](), node.right)
            )
        case ast.BoolOp(op=ast.And()):
            yield ast.unparse(ast.BoolOp(ast.Or(), node.values))
        case ast.BoolOp(op=ast.Or()):
            yield ast.unparse(ast.BoolOp(ast.And(), node.values))
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub()):
            yield ast.unparse(node.operand)
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value)):
            yield str(value + 1)
        case ast.Attribute(attr=name) if name in OTHER_NAME:
            yield ast.unparse(ast.Attribute(node.value, OTHER_NAME[name], node.ctx))


def tested(
    mutants: Sequence[Mutant], num_workers: int
) -> Iterator[tuple[Mutant, bool]]:
    """Test the mutants in copies of the repository, and return whether each was killed."""
    with (
        tempfile.TemporaryDirectory() as place,
        ThreadPoolExecutor(num_workers) as pool,
    ):
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(num_workers):
            copies.put(copy_of_the_repository(Path(place) / str(number)))

        def is_killed(mutant: Mutant) -> bool:
            copy = copies.get()
            module = copy / mutant.path
            original = module.read_bytes()
            try:
                module.write_text(mutant.text, encoding="utf-8")
                return tests_fail(copy, mutant.path)
            finally:
                module.write_bytes(original)
                copies.put(copy)

        for room in sorted({place_of(mutant.path) for mutant in mutants}):
            if tests_fail(Path(place) / "0", room):
                raise UserError(
                    f"The tests of {room} fail without a change. Repair them first."
                )
        yield from zip(mutants, pool.map(is_killed, mutants), strict=True)


def copy_of_the_repository(copy: Path) -> Path:
    """Copy what the tests need."""
    ignored = shutil.ignore_patterns(".*", "mlruns", "outputs", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=ignored, symlinks=True)
    return copy


def tests_fail(copy: Path, path: str) -> bool:
    """Run the tests of a module in a process that has loaded the libraries already."""
    process = multiprocessing.get_context("fork").Process(
        target=run_tests, args=(copy, path)
    )
    process.start()
    process.join(TIMEOUT_SECONDS)
    if process.is_alive():
        os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
    return process.exitcode != 0


def run_tests(copy: Path, path: str) -> None:
    """Run the tests in the copy, first those of the module's own file; exit with their status."""
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    os.chdir(copy)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    for name in [
        one for one in sys.modules if one.split(".")[0] in ("emea", "benchmarks")
    ]:
        del sys.modules[name]
    sys.path.insert(0, str(copy))
    os.environ["PYTHONPATH"] = str(copy)
    import pytest

    own = [
        str(found.relative_to(copy))
        for found in copy.glob(f"tests/**/test_{Path(path).name}")
    ]
    others = [*CRITICAL[place_of(path)], *(f"--ignore={name}" for name in own)]
    for files in (own, others) if own else (others,):
        status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files])
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            sys.exit(status)


def place_of(path: str) -> str:
    """Return the entry of the critical code that a module belongs to."""
    (place,) = [place for place in CRITICAL if path.startswith(place)]
    return place


def preload() -> None:
    """Load the libraries, so that each test process has them from the start."""
    import hydra  # noqa: F401
    import hypothesis  # noqa: F401
    import numba  # noqa: F401
    import pandas  # noqa: F401
    import pytorch_lightning  # noqa: F401
    import scipy.optimize  # noqa: F401
    import sklearn  # noqa: F401
    import torch  # noqa: F401


preload()
