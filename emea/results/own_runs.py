"""The report of a user's own runs: the best run of each pair, and a table of all runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from emea.errors import writing
from emea.evaluation.metric_table import REPORTED, listed_titles
from emea.record.checked_files import write_atomic
from emea.record.markdown import markdown_table
from emea.record.run_record import COMMAND_TAG
from emea.results.page import html_document, page_style, resource, template_environment
from emea.results.recorded_run import RecordedRun, number_at

PAGE, TABLE = "report.html", "runs/results.md"
TITLE = "Your runs"
WHEN = {"initial": " before", "final": "", "one_to_one": " one-to-one"}
"""Ends of the titles of columns, by stage."""

COLUMNS = {
    f"{column.metric.title}{WHEN[column.stage]}": (column.path, column.metric.form)
    for column in REPORTED
} | {"seconds": ("seconds.total", "{:.0f}")}
"""Titles of the columns with numbers, their paths into ``metrics.json`` and their formats."""

IDENTITY = {
    "pair": "data",
    "model": "model",
    "rule": "rule",
    "em": "em",
    "protocol": "protocol",
}
COMMAND = "command"
NOTE = (
    f"{listed_titles(REPORTED)} are among test targets, before and after EM. They are empty if a "
    "run had no test links. *Hit@1 one-to-one* is after EM and one-to-one inference, in which "
    "source entities compete for targets. The command repeats a run, or the sweep that a run "
    "belongs to."
)

BEST_TITLE = "Best runs"
BEST_COLUMNS = ("pair", "ratio", "protocol", "best run", "Hit@1", "runs")
BEST_NOTE = (
    "The run with the highest Hit@1 on test links for each pair, ratio and protocol. Choose "
    "settings on validation links, not with this table."
)


class RunTable(NamedTuple):
    """A table of runs; ``text`` has the titles of the columns that hold no numbers."""

    columns: tuple[str, ...]
    text: frozenset[str]
    rows: list[list[str]]


def write_own_runs(runs: Sequence[RecordedRun], out: Path) -> None:
    """Write the report of a user's own runs as Markdown and as a page.

    Raises:
        DataError: If the folder is not writable.
    """
    counts = run_counts(runs)
    sections = [("All runs", NOTE, all_runs(runs))]
    best = best_runs(runs)
    if best.rows:
        sections.insert(0, (BEST_TITLE, BEST_NOTE, best))
    texts = [f"# {TITLE}", counts]
    for title, note, table in sections:
        texts += [f"## {title}", note, markdown_table([*table.columns], table.rows)]
    template = template_environment("emea.results").get_template("own_runs.html")
    body = template.render(title=TITLE, counts=counts, sections=sections)
    page = html_document(
        TITLE, body, page_style(), [resource("emea.results", "page.js")]
    )
    with writing(out):
        write_atomic(out / TABLE, "\n\n".join(texts) + "\n")
        write_atomic(out / PAGE, page)


def run_counts(runs: Sequence[RecordedRun]) -> str:
    """Say how many runs there are, and how many of them have test links."""
    num_measured = sum(bool(_shown(run, "Hit@1")) for run in runs)
    finished = "1 finished run" if len(runs) == 1 else f"{len(runs)} finished runs"
    return f"{finished}, {num_measured} of them with test links."


def all_runs(runs: Sequence[RecordedRun]) -> RunTable:
    """Return a table of all runs by their start time."""
    rows = [_row(run) for run in sorted(runs, key=lambda run: run.started)]
    text = frozenset({"run", *IDENTITY, COMMAND})
    return RunTable(("run", *IDENTITY, *COLUMNS, COMMAND), text, rows)


def best_runs(runs: Sequence[RecordedRun]) -> RunTable:
    """Return the run with the highest Hit@1 on test links for each pair, ratio and protocol."""
    groups: dict[tuple[str, str, str], list[RecordedRun]] = {}
    for run in runs:
        if not _shown(run, "Hit@1"):
            continue
        ratio = number_at(run.metrics, "ratio")
        share = (
            f"{ratio:.4g}" if ratio is not None else str(run.metrics.get("split") or "")
        )
        place = (str(run.metrics.get("data")), share, str(run.metrics.get("protocol")))
        groups.setdefault(place, []).append(run)
    rows = []
    for place, members in sorted(groups.items()):
        best = max(
            members, key=lambda run: number_at(run.metrics, "final.hit@1") or 0.0
        )
        rows.append([*place, best.name, _shown(best, "Hit@1"), str(len(members))])
    return RunTable(BEST_COLUMNS, frozenset(BEST_COLUMNS[:4]), rows)


def _row(run: RecordedRun) -> list[str]:
    shown = [str(run.metrics.get(key) or "") for key in IDENTITY.values()]
    metrics = [_shown(run, title) for title in COLUMNS]
    command = run.header["tags"].get(COMMAND_TAG, "")
    return [run.name, *shown, *metrics, command]


def _shown(run: RecordedRun, title: str) -> str:
    path, form = COLUMNS[title]
    value = number_at(run.metrics, path)
    return "" if value is None else form.format(value)
