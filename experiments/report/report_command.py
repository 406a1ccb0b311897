"""``python -m experiments report`` writes the paper's report from recorded runs."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from emea.results.own_runs import PAGE
from experiments.archive.study import EXPERIMENTS
from experiments.report.records import load_runs, load_studies
from experiments.report.write import Results, write_own_runs, write_results

DESCRIPTION = """Write tables and figures as Markdown, CSV, SVG and one HTML page.

Without options, the recorded runs of all studies are reported, and the generated tables of the
documents are written. With --runs, your own runs are reported next to the paper's
numbers."""


def main(arguments: Sequence[str]) -> int:
    """Write the requested reports and return the exit status."""
    options = _parser().parse_args(arguments)
    if options.runs is None:
        runs, out = load_studies(EXPERIMENTS), options.out or EXPERIMENTS
        names = write_results(Results(runs), out)
    else:
        runs, out = load_runs(options.runs), options.out or Path("report")
        names = write_own_runs(runs, out)
    number = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    print(f"{number}: wrote {', '.join(names)} and {out / PAGE}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments report",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--runs", type=Path, nargs="+", metavar="FOLDER", help="run folders, or studies"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="default: experiments, or report for own runs",
    )
    return parser
