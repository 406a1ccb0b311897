"""Writes an explanation as text for a terminal and as JSON."""

import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from emea.explain import wording
from emea.explain.explanation import Case, Contribution, Explanation
from emea.run.finished_run import FinishedRun

SCHEMA = 1
"""Version of the JSON format. Increase it when a field changes (see docs/explain.md)."""


def json_text(run: FinishedRun, explanations: list[Explanation]) -> str:
    """Write the run and its explanations as JSON, with everything that text and page show."""
    value = {"schema": SCHEMA, "run": run_card(run), "explanations": [*map(_fields, explanations)]}
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def run_card(run: FinishedRun) -> dict[str, Any]:
    """Identify the run: its folder and main settings."""
    keys = ("method", "model", "em", "rule", "data", "protocol", "ratio", "seed", "split_seed")
    return {"folder": run.folder.name, **{key: run.metrics[key] for key in keys}}


def card_text(run: FinishedRun) -> str:
    """Return the card of the run in one line."""
    return ", ".join(f"{key} {value}" for key, value in run_card(run).items() if value is not None)


def _fields(explanation: Explanation) -> dict[str, Any]:
    fields = asdict(explanation, dict_factory=_without_empty)
    return {"is_matched": explanation.is_matched, **fields}


MOST_PIECES, MOST_SILENT = 8, 5
"""Maximum number of pieces of evidence and of unmatched neighbours in the text."""


def print_explanations(console: Console, explanations: list[Explanation]) -> None:
    """Print explanations, separated by a line."""
    for place, explanation in enumerate(explanations):
        if place:
            console.rule(style="dim")
        console.print(explanation_text(explanation))


def plain_text(explanation: Explanation, width: int = 100) -> str:
    """Return an explanation as a string without colours."""
    out = io.StringIO()
    print_explanations(Console(file=out, width=width, color_system=None), [explanation])
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def explanation_text(explanation: Explanation) -> RenderableType:
    """Lay out the verdict, the comparison, the evidence, missing support and rival claims."""
    parts: list[RenderableType] = [
        Text(wording.heading(explanation), style="bold", overflow="fold"),
        Text(wording.verdict(explanation), overflow="fold"),
        Text(wording.truth(explanation), style="dim"),
        Text(""),
        _comparison(explanation),
        *(Text(line, style="dim") for line in filter(None, [wording.meanings(explanation)])),
        *_evidence(explanation),
        *_silent(explanation.asked),
        Text("\nRivals", style="bold"),
        *(Text(line, overflow="fold") for line in wording.against(explanation)),
    ]
    return Group(*parts)


def _comparison(explanation: Explanation) -> Table:
    table = Table(box=None, pad_edge=False, header_style="", show_header=True)
    table.add_column("", overflow="fold")
    names = [("this pair", explanation.asked.target)]
    if explanation.rival is not None:
        names.append((wording.rival_name(explanation), explanation.rival.target))
    for role, target in names:
        title = Text(f"{role}\n", style="bold") + Text(target.short, style="dim")
        table.add_column(title, overflow="fold")
    for row in wording.comparison(explanation):
        table.add_row(*(Text(cell) for cell in row[: 1 + len(names)]))
    return table


def _evidence(explanation: Explanation) -> Iterator[RenderableType]:
    pieces = explanation.asked.contributions
    yield Text(f"\nEvidence for {wording.heading(explanation)}", style="bold")
    yield Text(wording.grounds(explanation), style="dim")
    if not pieces:
        yield Text("No neighbour supports the pair.")
        return
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for piece in pieces[:MOST_PIECES]:
        table.add_row(Text(wording.percent(piece.share), style="bold"), _piece(piece))
    yield table
    if len(pieces) > MOST_PIECES:
        rest = sum(piece.share for piece in pieces[MOST_PIECES:])
        yield Text(f"and {len(pieces) - MOST_PIECES} more ({wording.percent(rest)})", style="dim")


def _piece(piece: Contribution) -> Text:
    label = ", training link" if piece.is_label else ""
    names = f"{piece.neighbour.short} = {piece.counterpart.short}"
    return Text.assemble(
        (names, "cyan"),
        f"  {wording.number(piece.neighbour_prob)}{label}\n",
        f"{wording.paths(piece)}\n",
        (wording.numbers(piece), "dim"),
    )


def _silent(case: Case) -> Iterator[RenderableType]:
    for side, found in (("source", case.unmatched), ("target", case.target_unmatched)):
        if not found:
            continue
        title = f"\nNeighbours of the {side} that do not support it: {len(found)}"
        lines = [Text(wording.silent(one), overflow="fold") for one in found[:MOST_SILENT]]
        if len(found) > MOST_SILENT:
            lines.append(Text(f"and {len(found) - MOST_SILENT} more", style="dim"))
        yield Group(Text(title, style="bold"), Padding(Group(*lines), (0, 0, 0, 2)))


def _without_empty(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a dataclass; an entity without a label has no such field."""
    return {name: value for name, value in fields if (name, value) != ("label", None)}
