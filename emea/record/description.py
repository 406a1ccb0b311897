"""The description of a run in MLflow: its results and warnings, or why it has none."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emea.errors import DataError
from emea.evaluation.metric_table import IN_TABLES
from emea.record.markdown import escape_markup, markdown_table
from emea.record.run_folder import METRICS_FILE, answered_entry, read_metrics
from emea.record.run_record import COMMAND_TAG, RunClosing, RunHeader

POOLS = {"test targets": None, "all targets": "all_targets"}
"""Sets of targets among which links are ranked, and their section in ``metrics.json``."""

STAGES = {"before EM": "initial", "after EM": "final"}


def describe_run(header: RunHeader, closing: RunClosing, folder: Path) -> str:
    """Return Markdown with the results of a run, or with the reason why it has none.

    Args:
        header: The header of the run.
        closing: The end of the run.
        folder: The run's folder, with ``metrics.json`` if it finished.
    """
    metrics = _metrics_of(folder)
    parts = []
    if closing.status != "FINISHED":
        reason = closing.reason or "no reason was recorded"
        parts.append(f"**{closing.status.capitalize()}**: {escape_markup(reason)}")
    parts += _results(metrics)
    parts += _warnings(metrics)
    if COMMAND_TAG in header.tags:
        parts.append(f"```\n{header.tags[COMMAND_TAG]}\n```")
    return "\n\n".join(parts)


def shown_number(value: object, digits: int = 4) -> str:
    """Return a number with a fixed number of digits, or ``n/a``."""
    return f"{value:.{digits}f}" if isinstance(value, int | float) else "n/a"


def _metrics_of(folder: Path) -> dict[str, Any]:
    """Return the numbers of a run; none if the file is missing or damaged."""
    if not (folder / METRICS_FILE).is_file():
        return {}
    try:
        return read_metrics(folder)
    except DataError:
        return {}


def _results(metrics: Mapping[str, Any]) -> list[str]:
    """Return the table of scores on the test links, and the score on the validation links."""
    parts = []
    if (metrics.get("num_links") or {}).get("test"):
        parts.append(f"Test links, protocol={metrics.get('protocol', 'unknown')}:")
        parts.append(_score_table(metrics))
    entry = answered_entry(dict(metrics))
    validation = entry.get("validation_answer") or entry.get("validation") or {}
    if validation.get("hit@1") is not None:
        hit = shown_number(validation["hit@1"])
        parts.append(f"Hit@1 on the validation links, among all targets: {hit}")
    return parts


def _score_table(metrics: Mapping[str, Any]) -> str:
    rows = []
    for pool, section in POOLS.items():
        for title, stage in STAGES.items():
            scores = metrics.get(stage) or {}
            if section is not None:
                scores = scores.get(section) or {}
            shown = [
                shown_number(scores.get(metric.name), metric.digits)
                for metric in IN_TABLES
            ]
            rows.append([pool, title, *shown])
    titles = [metric.title for metric in IN_TABLES]
    return markdown_table(["ranked among", "", *titles], rows)


def _warnings(metrics: Mapping[str, Any]) -> list[str]:
    found = metrics.get("warnings") or []
    if not found:
        return []
    lines = [f"- {escape_markup(str(text))}" for text in found]
    return ["\n".join(["Warnings:", "", *lines])]
