"""Small pieces of reports: tables in Markdown, origins, the paper's numbers."""

import csv
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any


def markdown_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], num_left: int, text: Collection[str] = ()
) -> str:
    """A table whose columns hold numbers, aligned to the right, or text, aligned to the left.

    Args:
        titles: of the columns.
        rows: their cells.
        num_left: so many columns hold text, from the first on.
        text: titles of further columns that do.
    """
    alignment = [
        "---" if index < num_left or title in text else "---:" for index, title in enumerate(titles)
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, alignment, *rows))


def machine_of(tags: Mapping[str, Any]) -> str:
    """The GPU, or the cores where there was none; ``unknown`` where nobody wrote it down."""
    if tags.get("gpu"):
        return str(tags["gpu"])
    if "cpu_count" not in tags:
        return "unknown"
    return f"{tags['cpu_count']} {tags['machine']} cores"


def short_commit(tags: Mapping[str, Any]) -> str:
    """As many digits of the commit as tables show."""
    return str(tags["commit"])[:10]


PaperNumbers = dict[tuple[str, float, str], dict[str, float]]
"""Metrics by (data, ratio, method)."""


def load_paper_numbers(path: Path) -> PaperNumbers:
    """Read a CSV with columns data, ratio, method and one per metric; ``#`` starts a comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    numbers: PaperNumbers = {}
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        key = (row.pop("data"), float(row.pop("ratio")), row.pop("method"))
        numbers[key] = {metric: float(value) for metric, value in row.items() if value}
    return numbers
