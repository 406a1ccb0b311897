"""No step in closed form goes unchecked: a module is used by a check here, or says why not."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
ROOMS = ("matching", "em", "rules", "baselines", "evaluation", "answer")
UNTRAINED = {"emea.encoders.light_ea"}
"""Encoders are trained, but for these."""

NOTHING_TO_ROUND = {
    "emea.matching.best_scores": "compared with torch in tests/matching",
    "emea.matching.search": "looks things up",
    "emea.answer.alignment": "names and numbers as they are written",
    "emea.answer.summary": "texts of numbers that are computed elsewhere",
    "emea.evaluation.metric_table": "means of ranks, compared with loops in tests/evaluation",
    "emea.answer.curation": "names and dates as they are written",
    "emea.answer.decision": "compares with a threshold",
    "emea.answer.exporting": "names and numbers as they are written",
    "emea.answer.merging": "names as they are written",
    "emea.answer.rdf": "names and numbers as they are written",
    "emea.em.best_iteration": "compares two numbers",
    "emea.em.counterparts": "double precision throughout",
    "emea.matching.auto_search": "chooses a search",
    "emea.matching.rejected_pairs": "compares numbers of pairs",
    "emea.matching.many_matching": "compared with a loop in tests/matching",
    "emea.rules.negative_evidence": "compared with a loop in tests/rules",
    "emea.answer.sssom": "names and numbers as they are written",
    "emea.matching.one_pass_search": "8 bits by design; its recall is measured in every run",
    "emea.matching.scanned_search": "compared with double precision in tests/matching",
    "emea.matching.best_pairs": "compares integers",
    "emea.rules.literal_rows": "lays rows side by side",
    "emea.rules.relation_overlap": "compared with double precision in tests/rules",
    "emea.em.members": "a mean, compared with double precision in tests/em",
    "emea.answer.schema": "the inclusions of PARIS, whose estimate is checked",
    "emea.em.local": "keeps rows and gives them back",
    "emea.em.joint": "keeps rows and gives them back",
    "emea.em.propagation": "double precision throughout",
    "emea.em.two_way": "checked as a part of the two-way step",
    "emea.em.reports": "keeps tensors and gives them back",
    "emea.em.em_callback": "calls search and step in turn",
    "emea.em.paper_step": "calls rule, M-step and E-step in turn",
    "emea.rules.rule": "lays values side by side",
    "emea.evaluation.metrics": "shares of counts",
    "emea.evaluation.one_to_one": "counts ranks; the inference is checked",
    "emea.answer.decided_pairs": "names and dates as they are written",
}


def modules() -> set[str]:
    found = {
        f"emea.{room}.{path.stem}"
        for room in ROOMS
        for path in (ROOT / "emea" / room).glob("*.py")
    }
    without_code = ("__init__", ".settings")
    return {name for name in found if not name.endswith(without_code)} | UNTRAINED


def used_by_checks() -> set[str]:
    """What the checks import; a linter sees to it that they use it, too."""
    trees = [
        ast.parse(path.read_text(encoding="utf-8")) for path in HERE.glob("test_*.py")
    ]
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {
        node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module
    }


def options() -> set[str]:
    """What configurations name: an option of one's own is one file and one YAML, and no test."""
    texts = [
        path.read_text(encoding="utf-8") for path in (ROOT / "conf").rglob("*.yaml")
    ]
    return {
        name
        for text in texts
        for name in re.findall(r"_target_: (emea\.[\w.]+)\.", text)
    }


def test_every_module_is_checked_or_says_why_not() -> None:
    assert set(NOTHING_TO_ROUND) < modules()
    unchecked = modules() - used_by_checks() - set(NOTHING_TO_ROUND)
    assert not unchecked - options()
