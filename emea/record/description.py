"""The description of a run for people: results, warnings, or why it failed."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emea.errors import DataError
from emea.record.run_folder import METRICS_FILE, read_metrics
from emea.record.run_record import COMMAND_TAG, RunClosing, RunHeader

COLUMNS = (("hit@1", "Hit@1"), ("hit@10", "Hit@10"), ("mrr", "MRR"), ("mr", "MR"))
SHARES = ("hit@1", "hit@10", "mrr")
"""Metrics between 0 and 1."""

MARKUP = re.compile(r"<(?=[A-Za-z/!?])")
"""The start of an HTML tag, comment or declaration."""


def describe_run(
    header: RunHeader, closing: RunClosing, folder: Path, chart: str | None = None
) -> str:
    """Return Markdown with the results of a run, or with the reason why it has none.

    Args:
        header: The header of the run.
        closing: The end of the run.
        folder: The run's folder, with ``metrics.json`` if it finished.
        chart: The address of a chart with the accuracy of encoder and joint distribution.
    """
    try:
        metrics = read_metrics(folder) if (folder / METRICS_FILE).is_file() else {}
    except DataError:
        metrics = {}
    parts = []
    if closing.status != "FINISHED":
        reason = closing.reason or "no reason was recorded"
        parts.append(f"**{closing.status.capitalize()}**: {escape_markup(reason)}")
    if metrics.get("initial") and metrics.get("final"):
        parts.append(_results(metrics, chart if metrics.get("history") else None))
    parts += _warnings(metrics)
    if metrics.get("history"):
        parts.append(_iterations(metrics["history"]))
    if COMMAND_TAG in header.tags:
        parts.append(f"```\n{header.tags[COMMAND_TAG]}\n```")
    return "\n\n".join(parts)


def _results(metrics: Mapping[str, Any], chart: str | None) -> str:
    rows = []
    for pool, title in ((None, "test targets"), ("all_targets", "all targets")):
        for stage, name in (("initial", "before EM"), ("final", "after EM")):
            values = metrics[stage] if pool is None else metrics[stage].get(pool) or {}
            rows.append([title, name, *(_shown(values.get(key), key) for key, _ in COLUMNS)])
    titles = ["ranked among", "", *(title for _, title in COLUMNS)]
    protocol = metrics.get("protocol", "unknown")
    # in the first line, because MLflow folds away all but the beginning of a description
    link = f" [Chart of encoder and joint by iteration]({chart})" if chart else ""
    return f"Test links, protocol={protocol}.{link}\n\n{markdown_table(titles, rows)}"


def _iterations(history: list[dict[str, Any]]) -> str:
    """Return Hit@1 of the encoder and of the joint distribution in each iteration."""
    rows = []
    for entry in history:
        validation = entry.get("validation_answer") or entry.get("validation") or {}
        scores = [(entry.get("neural") or {}), (entry.get("joint") or {}), validation]
        shown = [_shown(values.get("hit@1"), "hit@1") for values in scores]
        rows.append([str(entry.get("iteration", "")), *shown])
    titles = ["iteration", "encoder Hit@1", "joint Hit@1", "validation Hit@1"]
    return markdown_table(titles, rows)


def _warnings(metrics: Mapping[str, Any]) -> list[str]:
    found = metrics.get("warnings") or []
    return (
        ["\n".join(["Warnings:", "", *(f"- {escape_markup(str(text))}" for text in found)])]
        if found
        else []
    )


def markdown_table(titles: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table with escaped cells; numbers start in the third column."""
    aligned = ["---" if index < 2 else "---:" for index in range(len(titles))]
    escaped = [
        [escape_markup(cell).replace("|", "\\|").replace("\n", "<br>") for cell in row]
        for row in rows
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, aligned, *escaped))


def escape_markup(text: str) -> str:
    """Return a Markdown text in which HTML tags, such as those in names of data, are text."""
    return MARKUP.sub("&lt;", text)


def _shown(value: object, key: str) -> str:
    if not isinstance(value, int | float):
        return "n/a"
    return f"{value:.4f}" if key in SHARES else f"{value:.1f}"
