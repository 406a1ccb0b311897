"""Links from tables to the recorded runs behind them."""

from collections.abc import Iterable

from emea.reporting.records import RecordedRun


def run_links(runs: Iterable[RecordedRun]) -> str:
    """The runs as numbered Markdown links to their headers, each once, from a study's folder."""
    folders = dict.fromkeys(f"{run.reference}/run.json" for run in runs)
    return " ".join(f"[{number}]({link})" for number, link in enumerate(folders, start=1))
