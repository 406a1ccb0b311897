"""Markdown tables."""

from collections.abc import Sequence


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]], num_left: int) -> str:
    """A table whose first columns are aligned to the left, the others to the right."""
    alignment = ["---"] * num_left + ["---:"] * (len(titles) - num_left)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, alignment, *rows))
