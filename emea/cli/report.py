"""``emea report`` writes tables and figures of recorded runs."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from emea.record.store_uri import DEFAULT_URI, STORE_VARIABLE

DESCRIPTION = """Write tables and figures of recorded runs as Markdown, CSV, SVG and one HTML page.

With --runs or --store, report your own runs. Without options, a checkout of the project writes the
reports of its own experiments and the generated tables of its documents. Elsewhere, the runs of
your MLflow store are reported."""


def main(arguments: Sequence[str]) -> int:
    """Write the requested reports and return the exit status."""
    options = _parser().parse_args(arguments)
    if options.calibration is not None:
        from emea.results.calibration import write_calibration

        print(*write_calibration(options.calibration, options.out), sep="\n")
        return 0
    # pandas and scipy are imported here, so that --help answers at once
    from emea.results.records import load_run_folders, load_studies
    from emea.results.report import EXPERIMENTS
    from emea.results.run_table import run_table
    from emea.results.store_runs import load_store
    from emea.results.write import Results, write_own_runs, write_results

    store = options.store
    if store is None and options.runs is None and not EXPERIMENTS.is_dir():
        store = os.environ.get(STORE_VARIABLE, DEFAULT_URI)  # an installed copy has no experiments
    if options.runs is not None or store is not None:
        runs = load_store(store) if store else load_run_folders(options.runs)
        out = options.out or Path("report")
        names = write_own_runs(run_table(runs), out)
    else:
        runs, out = load_studies(EXPERIMENTS), options.out or EXPERIMENTS
        names = write_results(Results(run_table(runs)), out)
    number = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    print(f"{number}: wrote {', '.join(names)} and {out / 'report.html'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="emea report",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--runs",
        type=Path,
        nargs="+",
        metavar="FOLDER",
        help="run folders, folders of them, or studies of emea record",
    )
    source.add_argument("--store", metavar="URI", help=f"an MLflow store, such as {DEFAULT_URI}")
    source.add_argument(
        "--calibration",
        type=Path,
        metavar="RUN",
        help="draw the share of correct answers of a run against their probability",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="the folder for the reports (for your own runs: report), or the calibration drawing",
    )
    return parser
