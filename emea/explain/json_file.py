"""Explanations as JSON."""

import json
from dataclasses import asdict
from typing import Any

from emea.pipeline.explanation import Explanation
from emea.pipeline.finished_run import FinishedRun

SCHEMA = 1
"""Raised whenever a field changes its name or meaning; docs/explain.md has the fields."""


def json_text(run: FinishedRun, explanations: list[Explanation]) -> str:
    """The run and its explanations; everything that text and page show is in it."""
    value = {"schema": SCHEMA, "run": run_card(run), "explanations": [*map(_told, explanations)]}
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def run_card(run: FinishedRun) -> dict[str, Any]:
    """Which run it was."""
    keys = ("method", "model", "em", "rule", "data", "protocol", "ratio", "seed", "split_seed")
    return {"folder": run.folder.name, **{key: run.metrics[key] for key in keys}}


def _told(explanation: Explanation) -> dict[str, Any]:
    return {"is_matched": explanation.is_matched, **asdict(explanation)}
