"""Reports as one HTML page with interactive charts that works offline."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup

from emea.config.composition import CONF
from emea.results.page import html_document, page_style, resource, template_environment
from experiments.report.drawing import vega_bundle
from experiments.report.report import Entry, Part, Report, Table, left_out

VERDICTS = {
    "not upheld": "bad",
    "upheld": "good",
    "not run": "none",
    "within": "good",
    "above": "high",
    "below": "bad",
}
"""Verdicts at the start of a cell, and the style of their badges."""

_VERDICT = re.compile(rf"({'|'.join(VERDICTS)})(?=$|\s*[(,;:])")
LONG_CELL = 40
"""A cell with more characters than this holds sentences and gets a minimum width."""


@cache
def _markdown() -> MarkdownIt:
    # without "html", markup in the text is shown as text
    return MarkdownIt("commonmark", {"html": False})


def report_page(title: str, reports: Sequence[Report], lead: Sequence[str] = ()) -> str:
    """Return all reports as one page.

    Args:
        title: The heading of the page.
        reports: The reports, in this order. The first one is the summary.
        lead: Sentences that open the summary.
    """
    sections = [
        _section(report, lead if not place else ())
        for place, report in enumerate(reports)
    ]
    template = template_environment("experiments.report").get_template("report.html")
    body = template.render(title=title, sections=sections)
    scripts = [resource("emea.results", "page.js")]
    if any(report.chart is not None for report in reports):
        scripts = [vega_bundle(), resource("experiments.report", "charts.js"), *scripts]
    return html_document(title, body, page_style(), scripts)


def _section(report: Report, lead: Sequence[str]) -> dict[str, Any]:
    points = "\n".join(f"- {sentence}" for sentence in lead)
    return {
        "name": report.name,
        "title": _inline(report.title),
        "lead": _block(points),
        "note": _block(report.note),
        "chart": as_json(report.chart) if report.chart is not None else "",
        "picture": f"{report.name}/{report.name}.svg",
        "parts": [_part(report, part) for part in report.parts],
        "provenance": report.provenance,
    }


def _part(report: Report, part: Part) -> dict[str, Any]:
    return {
        "title": _inline(part.title),
        "label": part.title or report.title,
        "note": _block(part.note),
        "table": _table(part.table, report) if part.table else None,
        "left_out": left_out(part.table) if part.table else "",
        "versions": part.versions,
        "is_open": report.name in ("summary", "claims", "runs"),
    }


def _table(table: Table, report: Report) -> dict[str, Any]:
    shown = table.shown()
    text = {*shown.keys, *shown.text}
    titles = [*shown.keys, *shown.titles]
    columns = [{"title": title, "is_number": title not in text} for title in titles]
    rows = [
        [
            _cell(entry, title in text, report)
            for entry, title in zip([*map(Entry, labels), *cells], titles, strict=True)
        ]
        for labels, cells in shown.rows
    ]
    return {"columns": columns, "rows": rows}


def _cell(entry: Entry, is_text: bool, report: Report) -> dict[str, Any]:
    found = _VERDICT.match(entry.text)
    word = found[1] if found else ""
    kind = "number" if not is_text else "prose" if len(entry.text) > LONG_CELL else ""
    hints = []
    if entry.cell and entry.cell.names:
        hints.append(f"Runs: {', '.join(entry.cell.names)}")
    if report.is_experiment and entry.line:
        hints.append(f"Command: {row_command(report.name, entry.line)}")
    return {
        "word": word,
        "badge": VERDICTS.get(word, ""),
        "html": _inline(entry.text[len(word) :]),
        "kind": kind,
        "hint": "\n".join(hints),
    }


def row_command(study: str, line: Mapping[str, Any]) -> str:
    """Return the command that runs the jobs of a table's row.

    A row of official folds, or of a pair with deleted links, is not an option of ``data``. Its
    command runs the whole study.
    """
    command = f"emea run -m experiment={study}"
    if not (CONF / "data" / f"{line['data']}.yaml").is_file():
        return command
    return f"{command} data={line['data']} ratio={line['ratio']}"


def _inline(text: str) -> Markup:
    is_plain = not re.search(r"[`*_\[<&]", text)
    return Markup(text) if is_plain else Markup(_markdown().renderInline(text))


def _block(text: str) -> Markup:
    return Markup(_markdown().render(text)) if text else Markup("")


def as_json(value: object) -> Markup:
    """Return a value as JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))
