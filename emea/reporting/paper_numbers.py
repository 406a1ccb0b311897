"""Numbers the paper printed, as data."""

import csv
from pathlib import Path

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
