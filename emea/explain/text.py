"""Writes an explanation as text for a terminal and as JSON."""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console, Group, OverflowMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from emea.explain import wording
from emea.explain.explanation import Case, Explanation
from emea.run.finished_run import FinishedRun
from emea.runtime.console import printable

SCHEMA = 1
"""Version of the JSON format. Increase it when a field changes (see docs/explain.md)."""


def json_text(run: FinishedRun, explanations: list[Explanation]) -> str:
    """Write the run and its explanations as JSON, with everything that text and page show."""
    keys = (
        "method",
        "model",
        "em",
        "rule",
        "data",
        "protocol",
        "ratio",
        "seed",
        "split_seed",
    )
    value = {
        "schema": SCHEMA,
        "run": {
            "folder": run.folder.name,
            **{key: run.metrics.get(key) for key in keys},
        },
        "explanations": [
            {"is_matched": one.is_matched, **asdict(one, dict_factory=_without_empty)}
            for one in explanations
        ],
    }
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


MOST_GROUPS, MOST_SILENT = 8, 5
"""Maximum number of pairs of neighbours and of unmatched neighbours in the text."""


def print_explanations(
    console: Console, explanations: list[Explanation], with_numbers: bool = False
) -> None:
    """Print explanations, separated by a line; the numbers are those of features and relations."""
    for place, explanation in enumerate(explanations):
        if place:
            console.rule(style="dim")
        console.print(explanation_text(explanation, with_numbers))


def plain_text(explanation: Explanation, width: int = 100) -> str:
    """Return an explanation as a string without colours."""
    out = io.StringIO()
    print_explanations(Console(file=out, width=width, color_system=None), [explanation])
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _shown(text: str, style: str = "", overflow: OverflowMethod | None = None) -> Text:
    """Return a text without control characters: names may come from a stranger."""
    return Text(printable(text), style=style, overflow=overflow)


def explanation_text(
    explanation: Explanation, with_numbers: bool = False
) -> RenderableType:
    """Lay out the verdict, the comparison, the evidence, missing support and rival claims."""
    rows = wording.comparison(explanation)
    meanings = ""
    if with_numbers:
        rows = [*rows, *wording.features(explanation)]
        meanings = wording.meanings(explanation)
    parts: list[RenderableType] = [
        _shown(wording.heading(explanation), style="bold", overflow="fold"),
        _shown(wording.verdict(explanation), overflow="fold"),
        _shown(wording.truth(explanation), style="dim"),
        _shown(""),
        _comparison(explanation, rows),
        *(_shown(line, style="dim") for line in filter(None, [meanings])),
        *_evidence(explanation, with_numbers),
        *_silent(explanation.asked),
        _shown("\nRivals", style="bold"),
        *(_shown(line, overflow="fold") for line in wording.against(explanation)),
    ]
    return Group(*parts)


def _comparison(explanation: Explanation, rows: Sequence[wording.Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="", show_header=True)
    table.add_column("", overflow="fold")
    names = [("this pair", explanation.asked.target)]
    if explanation.rival is not None:
        names.append((wording.rival_name(explanation), explanation.rival.target))
    for role, target in names:
        title = _shown(f"{role}\n", style="bold") + _shown(target.short, style="dim")
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(_shown(cell) for cell in row[: 1 + len(names)]))
    return table


def _evidence(explanation: Explanation, with_numbers: bool) -> Iterator[RenderableType]:
    groups = wording.grouped(explanation.asked.contributions)
    yield _shown(f"\nEvidence for {wording.heading(explanation)}", style="bold")
    yield _shown(wording.grounds(explanation), style="dim")
    if not groups:
        yield _shown("No neighbour supports the pair.")
        return
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for group in groups[:MOST_GROUPS]:
        share = _shown(wording.percent(group.share), style="bold")
        table.add_row(share, _group(group, with_numbers))
    yield table
    if len(groups) > MOST_GROUPS:
        rest = sum(group.share for group in groups[MOST_GROUPS:])
        yield _shown(
            f"and {len(groups) - MOST_GROUPS} more ({wording.percent(rest)})",
            style="dim",
        )


def _group(group: wording.Group, with_numbers: bool) -> Text:
    label = ", training link" if group.is_label else ""
    names = wording.group_title(group)
    lines = [wording.relations_text(group)]
    if with_numbers:
        shared = group.pieces[0].shared_words
        lines = [
            f"{lines[0] if shared else wording.paths(one)}\n{wording.numbers(one)}"
            for one in group.pieces
        ]
    prob = f"  {wording.number(group.prob)}{label}\n"
    return Text.assemble((printable(names), "cyan"), prob, printable("\n".join(lines)))


def _silent(case: Case) -> Iterator[RenderableType]:
    for side, found in (("source", case.unmatched), ("target", case.target_unmatched)):
        if not found:
            continue
        title = f"\nNeighbours of the {side} that do not support it: {len(found)}"
        lines = [
            _shown(wording.silent(one), overflow="fold") for one in found[:MOST_SILENT]
        ]
        if len(found) > MOST_SILENT:
            lines.append(_shown(f"and {len(found) - MOST_SILENT} more", style="dim"))
        yield Group(_shown(title, style="bold"), Padding(Group(*lines), (0, 0, 0, 2)))


def _without_empty(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a dataclass; an entity without a label has no such field."""
    return {name: value for name, value in fields if (name, value) != ("label", None)}
