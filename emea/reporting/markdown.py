"""Markdown tables."""

from collections.abc import Collection, Sequence


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
