"""How the code reads: tokens per line, comments and definitions, next to an earlier version.

These are measures to think about, not limits. What a reader must hold in mind is tested in
tests/test_structure.py.
"""

import argparse
import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
COUNTED = (tokenize.NAME, tokenize.NUMBER, tokenize.OP)
"""Kinds of tokens that a reader reads; texts and comments are counted apart."""

RUN = [sys.executable, "-X", "importtime", "-c", "import emea.run.job"]
"""Imports what a training run needs."""


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
        "--since", default="HEAD", metavar="COMMIT", help="default: HEAD"
    )
    options = parser.parse_args(arguments)
    before = total(committed(options.since))
    now = total(path.read_text(encoding="utf-8") for path in modules())
    table = Table("measure", options.since, "now")
    for name, old, new in rows(before, now):
        table.add_row(name, old, new)
    table.add_row("modules of emea that a run loads", "", str(num_loaded()))
    Console().print(table)


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


def total(texts: Iterator[str]) -> Measures:
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
