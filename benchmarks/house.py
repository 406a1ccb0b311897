"""How the code reads: tokens per line, comments and definitions, next to an earlier version.

These are measures to think about, not limits. What a reader must hold in mind is tested in
tests/test_structure.py.
"""

import argparse
import ast
import io
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
COUNTED = (tokenize.NAME, tokenize.NUMBER, tokenize.OP)
"""Kinds of tokens that a reader reads; texts and comments are counted apart."""

RELEASE = "61a4f766"
"""The commit of the last release, 0.1.0, which the house is compared with by default."""

RUN = [sys.executable, "-X", "importtime", "-c", "import emea.run.job"]
"""Imports what a training run needs."""

TRACED = """
import sys, tempfile, threading
from pathlib import Path

root = str(Path("emea").resolve())
files, functions = set(), set()

def note(frame, event, argument):
    code = frame.f_code
    if code.co_filename.startswith(root) and not code.co_name.startswith("<"):
        files.add(code.co_filename)
        functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))

threading.setprofile(note)
sys.setprofile(note)
from emea.cli.main import main
settings = ["data.num_entities=100", "split.num_validation=10", "model.initial_epochs=2",
    "model.epochs_per_iteration=1", "em.iterations=1", "tracking=none", "trainer=cpu"]
with tempfile.TemporaryDirectory() as folder:
    main(["run", f"hydra.run.dir={folder}", *settings])
sys.setprofile(None)
print(len(files), len(functions), file=sys.stderr)
"""
"""Runs ``emea run`` on a small synthetic pair, and counts what it enters."""

LINE_LENGTH = 100
"""Characters of a line with which both versions are compared, too."""


class Measures(NamedTuple):
    """Counts of the modules of one version.

    Args:
        modules: Number of modules.
        code_lines: Lines with a token.
        tokens: Names, numbers and operators.
        comments: Comments.
        definitions: Functions and classes.
        pair_assignments: Statements such as ``a, b = x, y``.
        choices: Conditional expressions.
    """

    modules: int = 0
    code_lines: int = 0
    tokens: int = 0
    comments: int = 0
    definitions: int = 0
    pair_assignments: int = 0
    choices: int = 0

    def plus(self, other: "Measures") -> "Measures":
        """Return the sums."""
        return Measures(*map(sum, zip(self, other, strict=True)))


def main(arguments: Sequence[str]) -> None:
    """Print the measures of the working tree and of a commit."""
    parser = argparse.ArgumentParser("python -m benchmarks house", description=__doc__)
    parser.add_argument(
        "--since",
        default=RELEASE,
        metavar="COMMIT",
        help=f"default: {RELEASE}, the release 0.1.0",
    )
    options = parser.parse_args(arguments)
    earlier = list(committed(options.since))
    later = [path.read_text(encoding="utf-8") for path in modules()]
    before, now = total(earlier), total(later)
    table = Table("measure", options.since, "now")
    for name, old, new in rows(before, now):
        table.add_row(name, old, new)
    widths = [density(total(reformatted(texts))) for texts in (earlier, later)]
    table.add_row(f"tokens per code line, both at {LINE_LENGTH} columns", *widths)
    table.add_row("modules of emea that a run loads", "", str(num_loaded()))
    entered = traced_run()
    table.add_row("files that a run enters", "", f"{entered.files:,}")
    table.add_row("functions that a run calls", "", f"{entered.functions:,}")
    Console().print(table)


def density(measures: Measures) -> str:
    """Return the tokens per code line."""
    return f"{measures.tokens / max(1, measures.code_lines):.1f}"


def reformatted(texts: Sequence[str]) -> list[str]:
    """Return modules as ruff formats them with lines of equal length.

    The line length of the project changed, which alone changes the tokens per line. Trailing commas
    that keep short lists open are ignored.
    """
    options = [f"line-length={LINE_LENGTH}", "format.skip-magic-trailing-comma=true"]
    flags = [word for one in options for word in ("--config", one)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.py") for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "ruff", "format", "--isolated", *flags, folder]
        subprocess.run(command, capture_output=True, check=True)
        return [path.read_text(encoding="utf-8") for path in paths]


class Entered(NamedTuple):
    """What a run enters: the files and the functions of the package."""

    files: int
    functions: int


def traced_run() -> Entered:
    """Return what a small run enters, from the command line to its results."""
    command = [sys.executable, "-c", TRACED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    files, functions = done.stderr.splitlines()[-1].split()
    return Entered(int(files), int(functions))


def rows(before: Measures, now: Measures) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of the table."""
    for name in ("modules", "code_lines", "tokens", "definitions"):
        old, new = getattr(before, name), getattr(now, name)
        yield name.replace("_", " "), f"{old:,}", f"{new:,}"
    ratios = (
        ("tokens per code line", "tokens", 1),
        ("comments per 1,000 code lines", "comments", 1000),
        ("a, b = x, y per 1,000 code lines", "pair_assignments", 1000),
        ("x if c else y per 1,000 code lines", "choices", 1000),
    )
    for title, name, per in ratios:
        shown = [
            per * getattr(one, name) / max(1, one.code_lines) for one in (before, now)
        ]
        yield title, f"{shown[0]:.1f}", f"{shown[1]:.1f}"


def modules() -> list[Path]:
    """Return the modules of the working tree."""
    return sorted((ROOT / "emea").rglob("*.py"))


def committed(commit: str) -> Iterator[str]:
    """Yield the text of each module of a commit."""
    names = git("ls-tree", "-r", "--name-only", commit, "--", "emea").splitlines()
    for name in names:
        if name.endswith(".py"):
            yield git("show", f"{commit}:{name}")


def git(*arguments: str) -> str:
    """Return what a git command prints."""
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def total(texts: Iterable[str]) -> Measures:
    """Return the measures of all modules."""
    found = Measures()
    for text in texts:
        found = found.plus(measured(text))
    return found


def measured(text: str) -> Measures:
    """Return the measures of one module."""
    kinds = list(tokenize.generate_tokens(io.StringIO(text).readline))
    counted = [one for one in kinds if one.type in COUNTED]
    nodes = list(ast.walk(ast.parse(text)))
    return Measures(
        modules=1,
        code_lines=len({one.start[0] for one in counted}),
        tokens=len(counted),
        comments=sum(one.type == tokenize.COMMENT for one in kinds),
        definitions=sum(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            for node in nodes
        ),
        pair_assignments=sum(is_pair_assignment(node) for node in nodes),
        choices=sum(isinstance(node, ast.IfExp) for node in nodes),
    )


def is_pair_assignment(node: ast.AST) -> bool:
    """Return whether a statement assigns several values to as many names."""
    if not isinstance(node, ast.Assign):
        return False
    return isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple)


def num_loaded() -> int:
    """Return how many modules of the package a training run imports."""
    done = subprocess.run(RUN, cwd=ROOT, capture_output=True, text=True, check=True)
    names = (line.rpartition("|")[2].strip() for line in done.stderr.splitlines())
    return sum(name == "emea" or name.startswith("emea.") for name in names)
