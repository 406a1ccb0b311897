"""The report of a user's own runs: a table of all runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from emea.errors import writing
from emea.record.checked_files import write_atomic
from emea.record.markdown import markdown_table
from emea.results.page import html_document, page_style, resource, template_environment
from emea.results.recorded_run import RecordedRun, number_at

PAGE = "report.html"
TITLE = "Your runs"
COLUMNS = {
    "Hit@1 before": ("initial.hit@1", "{:.4f}"),
    "Hit@1": ("final.hit@1", "{:.4f}"),
    "MRR": ("final.mrr", "{:.4f}"),
    "MR": ("final.mr", "{:.1f}"),
    "seconds": ("seconds.total", "{:.0f}"),
}
IDENTITY = {"pair": "data", "model": "model", "rule": "rule", "em": "em", "protocol": "protocol"}
NOTE = (
    "Hit@1, MRR and MR are among test targets, before and after EM. They are empty if a run had no "
    "test links."
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
    counts, table = run_counts(runs), all_runs(runs)
    texts = [f"# {TITLE}", counts, NOTE, markdown_table([*table.columns], table.rows)]
    template = template_environment("emea.results").get_template("own_runs.html")
    body = template.render(title=TITLE, counts=counts, note=NOTE, table=table)
    page = html_document(TITLE, body, page_style(), [resource("emea.results", "page.js")])
    with writing(out):
        write_atomic(out / "runs" / "results.md", "\n\n".join(texts) + "\n")
        write_atomic(out / PAGE, page)


def run_counts(runs: Sequence[RecordedRun]) -> str:
    """Say how many runs there are, and how many of them have test links."""
    num_measured = sum(bool(_shown(run, "Hit@1")) for run in runs)
    return f"{len(runs)} finished runs, {num_measured} of them with test links."


def all_runs(runs: Sequence[RecordedRun]) -> RunTable:
    """Return a table of all runs by their start time."""
    rows = [_row(run) for run in sorted(runs, key=lambda run: run.started)]
    return RunTable(("run", *IDENTITY, *COLUMNS), frozenset({"run", *IDENTITY}), rows)


def _row(run: RecordedRun) -> list[str]:
    shown = [str(run.metrics.get(key) or "") for key in IDENTITY.values()]
    return [run.name, *shown, *(_shown(run, title) for title in COLUMNS)]


def _shown(run: RecordedRun, title: str) -> str:
    path, form = COLUMNS[title]
    value = number_at(run.metrics, path)
    return "" if value is None else form.format(value)
