"""Text in Markdown that may contain names from the data."""

import re

MARKUP = re.compile(r"<(?=[A-Za-z/!?])")
"""The start of an HTML tag, comment or declaration."""


def markdown_table(titles: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table with escaped cells; numbers start in the third column."""
    aligned = ["---" if index < 2 else "---:" for index in range(len(titles))]
    escaped = [
        [escape_markup(cell).replace("|", "\\|").replace("\n", "<br>") for cell in row]
        for row in rows
    ]
    return "\n".join(
        f"| {' | '.join(cells)} |" for cells in (titles, aligned, *escaped)
    )


def escape_markup(text: str) -> str:
    """Return a Markdown text in which HTML tags, such as those in names of data, are text."""
    return MARKUP.sub("&lt;", text)
