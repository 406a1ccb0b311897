"""The description of a run for people: results, warnings, or why it failed."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emea.errors import DataError
from emea.record.run_folder import METRICS_FILE, read_metrics
from emea.record.run_record import COMMAND_TAG, RunClosing, RunHeader

MARKUP = re.compile(r"<(?=[A-Za-z/!?])")
"""The start of an HTML tag, comment or declaration."""


def describe_run(header: RunHeader, closing: RunClosing, folder: Path) -> str:
    """Return Markdown with the results of a run, or with the reason why it has none.

    Args:
        header: The header of the run.
        closing: The end of the run.
        folder: The run's folder, with ``metrics.json`` if it finished.
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
        parts.append(_results(metrics))
    if metrics.get("warnings"):
        warnings = (f"- {escape_markup(str(text))}" for text in metrics["warnings"])
        parts.append("\n".join(["Warnings:", "", *warnings]))
    if COMMAND_TAG in header.tags:
        parts.append(f"```\n{header.tags[COMMAND_TAG]}\n```")
    return "\n\n".join(parts)


def _results(metrics: Mapping[str, Any]) -> str:
    stages = (("initial", "before EM"), ("final", "after EM"))
    found = [(title, metrics[stage].get("hit@1")) for stage, title in stages]
    hits = ", ".join(f"{hit:.4f} {title}" for title, hit in found if isinstance(hit, int | float))
    protocol = metrics.get("protocol", "unknown")
    return f"Hit@1 of test links among test targets, protocol={protocol}: {hits or 'n/a'}."


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
