"""``emea report`` writes a table of finished runs."""

from collections.abc import Sequence
from pathlib import Path

from emea.cli.arguments import add_force_argument, add_out_argument, command_parser
from emea.config.paths import check_no_link
from emea.errors import DataError
from emea.runtime.console import say

DESCRIPTION = """Write a table of finished runs as Markdown and as an HTML page.

Without options, the runs below outputs and multirun are reported."""


def main(arguments: Sequence[str]) -> int:
    """Write the requested reports and return the exit status."""
    parser = command_parser("report", DESCRIPTION)
    help = "run folders, or folders of them"
    parser.add_argument("--runs", type=Path, nargs="+", metavar="FOLDER", help=help)
    add_out_argument(parser, "report", Path("report"))
    add_force_argument(parser)
    options = parser.parse_args(arguments)
    # imported here, so that --help answers at once
    from emea.record import outputs
    from emea.record.outputs import check_file
    from emea.record.sync import RUNS
    from emea.results.own_runs import PAGE, TABLE, write_own_runs
    from emea.results.recorded_run import load_record_folders

    usual = [
        folder for folder in map(Path, RUNS) if any(folder.glob("**/metrics.json"))
    ]
    if not (options.runs or usual):
        raise DataError(
            f"{' and '.join(RUNS)} contain no finished run. Name folders with --runs."
        )
    runs = load_record_folders(options.runs or usual)
    out = options.out
    check_no_link(out)
    check_no_link(out / "runs")
    for name, kind in ((PAGE, outputs.PAGE), (TABLE, outputs.RUNS)):
        check_file(out / name, options.force, kind=kind)
    write_own_runs(runs, out)
    number = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    say(f"{number}: wrote {out / PAGE}")
    return 0
