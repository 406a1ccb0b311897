"""Links from tables to the recorded runs behind them."""

from collections.abc import Iterable

from emea.reporting.records import RecordedRun


def run_links(runs: Iterable[RecordedRun], studies: str = "..") -> str:
    """The runs as numbered Markdown links to their headers, each once.

    Args:
        runs: recorded runs.
        studies: where the studies lie, seen from the text; the default is for a study's report.
    """
    places = dict.fromkeys(_place(run, studies) for run in runs)
    return " ".join(f"[{number}]({link})" for number, link in enumerate(places, start=1))


def _place(run: RecordedRun, studies: str) -> str:
    """Runs that are not of a study, such as a store's, are named by their whole address."""
    if run.folder.parent.name != "records":
        return (run.folder / "run.json").resolve().as_uri()
    return f"{studies}/{run.reference}/run.json"
