"""The pages about the code name files and functions that exist, and lists that must agree do."""

import ast
import pkgutil
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

from emea.aligner import Evaluation
from emea.em import normaliser
from emea.em import settings as em_settings
from emea.evaluation.ranks import ranking_metrics
from emea.explain.explainer import MEANINGS
from emea.results import comparison
from emea.rules.avoid_conflict import AvoidConflict
from emea.rules.paris import PARIS
from emea.run import sweep

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "docs" / name for name in ("where.md", "architecture.md", "contributing.md")
]

PLACE = r"(?:emea|conf|tests|docs|experiments|benchmarks)/[\w/.]*"
WITHOUT_ESTIMATE = {"emea.encoders.iptranse.IPTransE"}
"""Encoders whose memory is not estimated."""


@cache
def defined_names(path: Path) -> set[str]:
    """Names at the top of a module, and ``Class.method``."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (inner for target in targets for inner in ast.walk(target))
            found |= {one.id for one in names if isinstance(one, ast.Name)}
        if isinstance(node, ast.ClassDef):
            inside = (one for one in node.body if isinstance(one, ast.FunctionDef))
            found |= {f"{node.name}.{one.name}" for one in inside}
    return found


def named_functions(text: str) -> set[tuple[str, str]]:
    """Files with a name that they define: in two cells of a table, or in parentheses."""
    found = set(re.findall(rf"`({PLACE}\.py)` \| `([\w.]+)`", text))
    for path, names in re.findall(rf"`({PLACE}\.py)` \(([^()]*)\)", text):
        found |= {(path, name) for name in re.findall(r"`([\w.]+)(?:\[[^`]*)?`", names)}
    return found


def is_defined(path: Path, name: str) -> bool:
    """Whether a module defines a name; methods may be named without their class."""
    known = defined_names(path)
    return name in known or name in {one.rpartition(".")[2] for one in known}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_named_files_exist(page: Path) -> None:
    named = set(re.findall(rf"`({PLACE})`", page.read_text(encoding="utf-8")))
    assert len(named) > 5
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize(
    ("page", "least"), [("where.md", 40), ("architecture.md", 100)]
)
def test_named_functions_exist(page: str, least: int) -> None:
    named = named_functions((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert len(named) > least
    assert {
        (path, name) for path, name in named if not is_defined(ROOT / path, name)
    } == set()


def test_every_encoder_has_an_estimate_of_its_memory() -> None:
    options = [
        yaml.safe_load(path.read_text())
        for path in (ROOT / "conf" / "model").glob("*.yaml")
    ]
    encoders = {one["encoder"]["_target_"] for one in options if "encoder" in one}
    estimated = {
        name
        for name in encoders
        if hasattr(pkgutil.resolve_name(name), "estimated_memory")
    }
    assert encoders - estimated == WITHOUT_ESTIMATE


def test_every_value_of_a_rule_has_a_meaning() -> None:
    assert {*PARIS.names, *AvoidConflict.names} <= set(MEANINGS)


def test_the_settings_know_every_normaliser() -> None:
    assert tuple(normaliser.NORMALISERS) == em_settings.NORMALISERS


def test_ranking_metrics_are_compared_and_in_the_python_api() -> None:
    metrics = list(ranking_metrics(np.array([1.0])))
    assert sorted(comparison.SCORES) == sorted(metrics)
    in_python = {name.replace("@", "_at_") for name in metrics} - {"mr"}
    assert in_python <= set(Evaluation._fields)


def test_columns_of_a_sweep_have_titles_and_names() -> None:
    outcome = sweep.JobOutcome(ROOT, overrides=(), metrics={})
    assert len(outcome.numbers) == len(sweep.COLUMNS) == len(sweep.NAMES)
