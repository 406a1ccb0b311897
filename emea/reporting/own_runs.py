"""The report of a store: the paper's tables and figures, reduced to what the store has runs of."""

import re
from dataclasses import replace

from emea.reporting.cells import NO_RECORD
from emea.reporting.comparison import NOT_RUN
from emea.reporting.study import Study

MISSING = {"", NOT_RUN, NO_RECORD}
"""Cells that hold no number of ours."""

_REFERENCE = re.compile(r"(.*, )?(paper|published)")
"""Titles of columns whose numbers are others'."""


def with_runs_only(study: Study) -> Study | None:
    """The study without rows, columns and tables that have no run; ``None`` if nothing is left."""
    blocks = "\n\n".join(study.parts).split("\n\n")
    kept: list[str] = []
    num_tables = 0
    for block in blocks:
        if block.startswith("| "):
            table = reduced_table(block)
            num_tables += table is not None
            kept += [] if table is None else [table]
        elif block != NOT_RUN:
            kept.append(block)
    if not num_tables:
        return None
    entries = tuple(entry for entry in study.entries if entry.cell is not None)
    return replace(study, parts=tuple(_without_empty_sections(kept)), entries=entries)


def reduced_table(table: str) -> str | None:
    """A Markdown table without rows and columns that have no run; ``None`` if no row is left."""
    titles, alignment, *rows = map(_cells, table.splitlines())
    numbers = [
        index
        for index, title in enumerate(titles)
        if alignment[index] == "---:" and not _REFERENCE.fullmatch(title)
    ]
    rows = [row for row in rows if any(row[index] not in MISSING for index in numbers)]
    if not rows:
        return None
    used = [index for index in range(len(titles)) if any(row[index] not in MISSING for row in rows)]
    lines = [titles, alignment, *rows]
    shown = [["" if line[index] == NOT_RUN else line[index] for index in used] for line in lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in shown)


def _cells(line: str) -> list[str]:
    return line.removeprefix("| ").removesuffix(" |").split(" | ")


def _without_empty_sections(blocks: list[str]) -> list[str]:
    """The blocks without headings, and the text below them, that have no table left."""
    sections: list[list[str]] = [[]]
    for block in blocks:
        if block.startswith("#"):
            sections.append([])
        sections[-1].append(block)
    first, *others = sections
    with_table = [one for one in others if any(block.startswith("| ") for block in one)]
    return [*first, *(block for section in with_table for block in section)]
