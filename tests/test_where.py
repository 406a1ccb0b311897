"""The pages about the code name files and functions that exist, and lists that must agree do."""

import ast
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from emea.em import normaliser
from emea.em import settings as em_settings
from emea.evaluation.metric_table import RANKING_METRICS, Evaluation
from emea.explain.explainer import MEANINGS
from emea.rules.avoid_conflict import AvoidConflict
from emea.rules.paris import PARIS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "docs" / name for name in ("where.md", "architecture.md", "contributing.md")
]

PLACE = r"(?:emea|conf|tests|docs|experiments|benchmarks)/[\w/.]*"
WITHOUT_ESTIMATE = {"emea.encoders.iptranse.IPTransE"}
"""Encoders whose memory is not estimated."""


@cache
def defined_names(path: Path) -> set[str]:
    """Names at the top of a module, and ``Class.method`` and ``Class.field``."""
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
            typed = (one for one in node.body if isinstance(one, ast.AnnAssign))
            found |= {f"{node.name}.{ast.unparse(one.target)}" for one in typed}
    return found


def named_functions(text: str) -> set[tuple[str, str]]:
    """Files with a name that they define: in two cells of a table, or in parentheses."""
    found = set(re.findall(rf"`({PLACE}\.py)` \| `([\w.]+)`", text))
    for path, names in re.findall(rf"`({PLACE}\.py)` \(([^()]*)\)", text):
        found |= {(path, name) for name in re.findall(r"`([\w.]+)(?:\[[^`]*)?`", names)}
    return found


def is_defined(path: Path, name: str) -> bool:
    """Whether a module defines a name; methods and fields may be named without their class."""
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


def test_metrics_of_the_python_api_are_its_fields() -> None:
    in_python = [one.attribute for one in RANKING_METRICS if one.in_python]
    assert list(Evaluation._fields[: len(in_python)]) == in_python


METRIC_NAME = re.compile(r"hit(?:@|_at_)\d+|Hit@\d+|mrr?|MRR?", re.ASCII)
OF_ONE_METRIC = {
    "emea/em/best_iteration.py": "the state of em.keep=best",
    "emea/em/em_callback.py": "the metric of em.keep=best",
    "emea/evaluation/metric_table.py": "the table",
    "emea/evaluation/metrics.py": "Hit@1 by degree and of a mapping",
    "emea/evaluation/ranks.py": "Hit@1 of a matching",
    "emea/fit/training_parts.py": "the metrics that stop a fit",
    "emea/record/description.py": "Hit@1 on the validation links",
    "emea/record/metrics_schema.py": "the types of the keys that commands read",
    "emea/record/run_folder.py": "the metric of em.keep=best",
    "emea/results/comparison.py": "the metric of the verdict",
    "emea/results/own_runs.py": "the metric of the best run",
    "emea/run/em_run.py": "the metric of the warning that EM hurts",
    "emea/run/judgement.py": "the metric of the warning that EM hurts",
    "emea/run/observer.py": "the validation links in the log",
    "emea/run/reasoning_run.py": "the log of a matching",
    "emea/run/result_table.py": "a run without test links",
}
"""Modules that use single metrics, and for what. A list of metrics belongs into the table."""


def test_metrics_are_listed_in_their_table_only() -> None:
    using = set()
    for path in (ROOT / "emea").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        texts = [one.value for one in nodes if isinstance(one, ast.Constant)]
        if any(isinstance(one, str) and METRIC_NAME.fullmatch(one) for one in texts):
            using.add(str(path.relative_to(ROOT)))
    assert using == set(OF_ONE_METRIC)
