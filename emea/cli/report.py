"""``emea report`` writes tables of finished runs, and draws the calibration of a run."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from emea.cli.arguments import command_parser
from emea.record.store_uri import DEFAULT_URI, STORE_VARIABLE

DESCRIPTION = f"""Write tables of finished runs as Markdown and as an HTML page: all runs, and the
best run of each setting.

Without options, the runs of the MLflow store are reported: ${STORE_VARIABLE}, or else
{DEFAULT_URI}."""


def main(arguments: Sequence[str]) -> int:
    """Write the requested reports and return the exit status."""
    options = _parser().parse_args(arguments)
    if options.calibration is not None:
        from emea.results.calibration import write_calibration

        print(*write_calibration(options.calibration, options.out), sep="\n")
        return 0
    # imported here, so that --help answers at once
    from emea.results.own_runs import PAGE, write_own_runs
    from emea.results.recorded_run import load_run_folders, load_store

    if options.runs is not None:
        runs = load_run_folders(options.runs)
    else:
        runs = load_store(options.store or os.environ.get(STORE_VARIABLE, DEFAULT_URI))
    out = options.out or Path("report")
    write_own_runs(runs, out)
    number = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    print(f"{number}: wrote {out / PAGE}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("report", DESCRIPTION)
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--runs",
        type=Path,
        nargs="+",
        metavar="FOLDER",
        help="run folders, or folders of them",
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
        help="the folder of the report (default: report), or the name of the calibration drawing",
    )
    return parser
