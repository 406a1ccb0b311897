"""``emea compare``: what differs between finished runs."""

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from emea.cli.arguments import add_force_argument, command_parser
from emea.errors import writing
from emea.record.outputs import PAGE, locked_file
from emea.runtime.console import say

DESCRIPTION = """Compares finished runs with the first one: settings that differ, metrics side by
side, a paired t-test over the test links, and the numbers of links won and lost.

RUN is a run folder. Runs are paired only if they were tested on the same links."""


def main(arguments: Sequence[str]) -> int:
    """Print the comparison, write the requested page and return the exit status."""
    parser = command_parser("compare", DESCRIPTION)
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="two or more finished runs"
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="also write an HTML page"
    )
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="also write a CSV file"
    )
    parser.add_argument(
        "--examples",
        type=int,
        default=0,
        metavar="N",
        help="name N links won and N links lost, which reads the data (default: 0)",
    )
    add_force_argument(parser)
    options = parser.parse_args(arguments)
    with ExitStack() as locks:
        for path, kind in ((options.csv, ""), (options.html, PAGE)):
            if path is not None:
                locks.enter_context(locked_file(path, options.force, kind=kind))
        _compare(options)
    return 0


def _compare(options: argparse.Namespace) -> None:
    """Print the comparison and write the files that are wanted."""
    from emea.record.checked_files import write_atomic
    from emea.results.comparison import as_csv, as_html, as_text, compare
    from emea.results.recorded_run import load_compared_run

    runs = [load_compared_run(place) for place in options.runs]
    comparison = compare(runs, options.examples)
    say(as_text(comparison))
    for path, render in ((options.csv, as_csv), (options.html, as_html)):
        if path is not None:
            with writing(path):
                write_atomic(path, render(comparison))
            say(f"\nwrote {path}")
