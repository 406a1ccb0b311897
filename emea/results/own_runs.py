"""The report of a user's own runs: a table of all runs, and the best of each setting."""

from collections.abc import Sequence
from pathlib import Path

from emea.errors import writing
from emea.record.checked_files import write_atomic
from emea.results.page import report_page
from emea.results.recorded_run import RecordedRun, number_at
from emea.results.report import Part, Report, report_markdown, text_table

PAGE = "report.html"
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
BEST_NOTE = (
    "The run with the highest Hit@1 on test links for each pair, ratio and protocol. Choose "
    "settings on validation links, not with this table."
)


def write_own_runs(runs: Sequence[RecordedRun], out: Path) -> None:
    """Write the report of a user's own runs as Markdown and as a page.

    Raises:
        DataError: If the folder is not writable.
    """
    report = runs_report(runs)
    with writing(out):
        write_atomic(out / report.name / "results.md", report_markdown(report))
        write_atomic(out / PAGE, report_page("Recorded runs", [report]))


def runs_report(runs: Sequence[RecordedRun], note: str = NOTE) -> Report:
    """Return a report with a row per run, in the order in which they started.

    Args:
        runs: The finished runs.
        note: Text above the table of all runs, in Markdown.
    """
    rows = [_row(run) for run in sorted(runs, key=lambda run: run.started)]
    everything = text_table(["run"], [*IDENTITY, *COLUMNS], rows, IDENTITY)
    best = _best(runs)
    num_measured = sum(int(row[-1]) for row in best)
    parts = [Part("All runs", note, everything)]
    if best:
        titles = ["ratio", "protocol", "best run", "Hit@1", "runs"]
        shown = text_table(["pair"], titles, best, titles[:3])
        parts.insert(0, Part("Best runs", BEST_NOTE, shown))
    counts = f"{len(runs)} finished runs, {num_measured} of them with test links."
    return Report("runs", "Your runs", counts, tuple(parts), is_experiment=False)


def _row(run: RecordedRun) -> list[str]:
    identity = run.metrics | run.place()
    shown = [str(identity.get(key) or "") for key in IDENTITY.values()]
    return [run.name, *shown, *(_shown(run, title) for title in COLUMNS)]


def _shown(run: RecordedRun, title: str) -> str:
    path, form = COLUMNS[title]
    value = number_at(run.metrics, path)
    return "" if value is None else form.format(value)


def _best(runs: Sequence[RecordedRun]) -> list[list[str]]:
    groups: dict[tuple[str, str, str], list[RecordedRun]] = {}
    for run in runs:
        if _shown(run, "Hit@1"):
            place = run.place()
            ratio, split = place["ratio"], run.metrics.get("split", "")
            share = str(split) if ratio is None else f"{ratio:.4g}"
            key = (str(place["data"]), share, str(run.metrics.get("protocol")))
            groups.setdefault(key, []).append(run)
    rows = []
    for key, found in sorted(groups.items()):
        best = max(found, key=lambda run: run.metrics["final"]["hit@1"])
        rows.append([*key, best.name, _shown(best, "Hit@1"), str(len(found))])
    return rows
