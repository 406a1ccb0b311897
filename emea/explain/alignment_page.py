"""Writes an alignment as one self-contained HTML page to search, judge and correct it."""

import os
import shlex
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from emea.answer.schema import Schema
from emea.data.protocol import seen_links
from emea.errors import writing
from emea.explain import wording
from emea.explain.explainer import Explainer
from emea.explain.explanation import Entity, Explanation
from emea.explain.page_content import Json, packed, page_content, shown_settings
from emea.record.checked_files import write_atomic
from emea.record.outputs import check_file
from emea.results.charts import COLOURS
from emea.results.page import (
    html_document,
    page_style,
    resource,
    template_environment,
)
from emea.run.predicting import run_schema

SCRIPTS = (
    "data",
    "evidence",
    "decisions",
    "charts",
    "table",
    "drawing",
    "pane",
    "page",
)
"""The scripts of the page, in the order in which they need each other."""

MOST_TERMS = 200
"""Maximum number of relations and of classes on the page."""

FILTERS = {
    "all": "All",
    "matched": "Matched",
    "unmatched": "Unmatched",
    "unsure": "Unsure",
    "given": "Given",
    "conflicts": "Conflicts",
    "decided": "Decided",
}


class View(NamedTuple):
    """What the page begins with.

    Args:
        title: The heading.
        label: Name of the rows that are shown first.
        entities: Their source entities, each with the reason.
        asked: Explanations whose numbers are part of the page.
        with_test: Whether the page may use test links; a review must not.
    """

    title: str
    label: str
    entities: Sequence[tuple[int, str]]
    asked: Sequence[Explanation] = ()
    with_test: bool = False


def asked_view(explanations: Sequence[Explanation]) -> View:
    """Return the view of pairs that a person asked about."""
    title = wording.listed(list(map(wording.heading, explanations)))
    reasons: dict[int, str] = {}
    for one in explanations:
        text = f"{wording.verdict(one)} {wording.truth(one)} {wording.grounds(one)}"
        reasons[one.source.id] = f"{reasons.get(one.source.id, '')} {text}".strip()
    return View(title, "Asked", list(reasons.items()), explanations, with_test=True)


def alignment_page(
    explainer: Explainer,
    folder: Path | None,
    schema: Schema | None = None,
    view: View | None = None,
) -> str:
    """Return the page of a finished run.

    Args:
        explainer: Explains pairs of the run.
        folder: The folder that a later command can read; ``None`` if the run has none.
        schema: The mapping of relations and classes.
        view: What the page begins with; ``None`` means all rows.
    """
    run = explainer.run
    shown = view or View(f"Alignment of {run.pair.name}", "", (), with_test=True)
    content = page_content(explainer, shown.entities, shown.with_test)
    cardinality = run.pair.cardinality
    content |= {
        "asked": list(map(_numbers, shown.asked)),
        "several": [not cardinality.one_target, not cardinality.one_source],
        "is_review": not shown.with_test,
        "run_id": run.header.run_id,
        "command": {
            "run": "FOLDER" if folder is None else shlex.quote(str(folder.resolve()))
        },
        "chart": {"colours": COLOURS},
    }
    source = run.pair.source
    target = run.pair.target
    environment = template_environment("emea.explain")
    # an example may be a long literal
    environment.filters["local"] = lambda name: Entity(0, name).short
    environment.filters["number"] = wording.number
    body = environment.get_template("alignment.html").render(
        title=shown.title,
        summary=f"{source.num_entities:,} source entities and {target.num_entities:,} target "
        f"entities of {run.pair.name}",
        facts=_facts(run.metrics, shown.with_test),
        warnings=run.metrics.get("warnings", ()),
        is_judged=any(one["links"] for one in content["judged"]),
        filters={"suggested": shown.label} | FILTERS,
        num_known=len(content["known"]),
        is_saved=folder is not None,
        is_open=view is None,
        content=packed(content),
        terms=[] if schema is None else wording.stated_terms(schema),
        most_rows=MOST_TERMS,
    )
    style = page_style() + resource("emea.explain", "browser/alignment.css")
    code = "\n".join(resource("emea.explain", f"browser/{name}.js") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{code}\n}})();'
    return html_document(shown.title, body, style, [script], kind="alignment")


def _numbers(explanation: Explanation) -> Json:
    """Return the table that compares a pair with its rival, with the weighted features."""
    asked = explanation.asked.target
    rival = explanation.rival
    columns = [f"this pair: {asked.short}"]
    if rival is not None:
        columns.append(f"{wording.rival_name(explanation)}: {rival.target.short}")
    rows = [*wording.comparison(explanation), *wording.features(explanation)]
    return {
        "source": explanation.source.id,
        "target": asked.id,
        "columns": columns,
        "rows": [row[: 1 + len(columns)] for row in rows],
        "meanings": wording.meanings(explanation),
    }


def run_page(explainer: Explainer, folder: Path | None) -> str:
    """Return the page of a whole run, with the mapping of its relations and classes."""
    schema = run_schema(explainer.run, shown_settings(explainer.run))
    return alignment_page(explainer, folder, schema)


def write_page(page: str, path: Path, is_opened: bool) -> None:
    """Write a page, and open it in the browser if this machine has a display.

    Raises:
        DataError: If the file cannot be written, or is a device or a file of a run.
    """
    check_file(path, force=True)  # the command has asked the user
    with writing(path):
        write_atomic(path, page)
    # a browser in the terminal would block the command
    has_display = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ
    if is_opened and (has_display or "WAYLAND_DISPLAY" in os.environ):
        webbrowser.open(path.resolve().as_uri())


def _facts(metrics: Any, with_test: bool) -> dict[str, str]:
    """Return the head of the page: what was run with which links."""
    export = metrics["export"]
    links = metrics["num_links"]
    protocol = metrics["protocol"]
    model = "" if metrics["model"] == "none" else f", {metrics['model']}"
    em = "" if metrics["em"] == "none" else f", em={metrics['em']}"
    given = f"{links['train']:,} for training, {links['validation']:,} for validation"
    if links.get("crossed"):
        given = f"{links['train']:,} links, each held out from one encoder"
    facts = {
        "Method": f"{metrics['method']}{model}{em}, decoding={metrics['decoding']}",
        **(
            {"Protocol": f"{protocol}: {seen_links(protocol)}"} if links["test"] else {}
        ),
        "Links": f"{given}, {links['test']:,} for test" if with_test else given,
        "Matches": f"{export['num_answered']:,} found, {export['num_unmatched']:,} sources without",
    }
    if metrics.get("counterparts"):
        share = metrics["counterparts"]["source"]
        facts["With a counterpart"] = (
            f"about {share['value']:.0%} of the source entities without a given link (95% interval "
            f"{share['low']:.0%} to {share['high']:.0%})"
        )
    return facts
