"""``emea report`` writes tables of finished runs, and draws the calibration of a run."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from emea.cli.arguments import command_parser
from emea.config.paths import check_no_link
from emea.errors import DataError

DESCRIPTION = """Write a table of finished runs as Markdown and as an HTML page.

Without options, the runs below outputs and multirun are reported."""


def main(arguments: Sequence[str]) -> int:
    """Write the requested reports and return the exit status."""
    options = _parser().parse_args(arguments)
    if options.calibration is not None:
        from emea.results.calibration import write_calibration

        print(*write_calibration(options.calibration, options.out), sep="\n")
        return 0
    # imported here, so that --help answers at once
    from emea.record.earlier_runs import RUNS
    from emea.results.own_runs import PAGE, write_own_runs
    from emea.results.recorded_run import load_run_folders

    usual = [folder for folder in map(Path, RUNS) if any(folder.glob("**/metrics.json"))]
    if not (options.runs or usual):
        raise DataError(f"{' and '.join(RUNS)} contain no finished run. Name folders with --runs.")
    runs = load_run_folders(options.runs or usual)
    out = options.out or Path("report")
    check_no_link(out)
    check_no_link(out / "runs")
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
