"""Links from tables to the recorded runs behind them."""

from collections.abc import Iterable

from emea.reporting.records import RecordedRun


def run_links(runs: Iterable[RecordedRun], studies: str = "..") -> str:
    """The runs as numbered Markdown links to their headers, each once.

    Args:
        runs: recorded runs.
        studies: where the studies lie, seen from the text; the default is for a study's report.
    """
    folders = dict.fromkeys(f"{studies}/{run.reference}/run.json" for run in runs)
    return " ".join(f"[{number}]({link})" for number, link in enumerate(folders, start=1))
