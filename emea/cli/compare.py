"""``emea compare``: what differs between finished runs."""

from collections.abc import Sequence
from pathlib import Path

from emea.cli.arguments import command_parser
from emea.errors import writing

DESCRIPTION = """Compares finished runs with the first one: settings that differ, metrics side by
side, a paired t-test over the test links, and the numbers of links won and lost.

RUN is a run folder. Runs are paired only if they were tested on the same links."""


def main(arguments: Sequence[str]) -> int:
    """Print the comparison, write the requested page and return the exit status."""
    parser = command_parser("compare", DESCRIPTION)
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="two or more finished runs"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write an HTML page")
    options = parser.parse_args(arguments)
    from emea.record.checked_files import write_atomic
    from emea.results.comparison import as_html, as_text, compare
    from emea.results.recorded_run import load_compared_run

    runs = [load_compared_run(place) for place in options.runs]
    comparison = compare(runs)
    print(as_text(comparison))
    if options.html is not None:
        with writing(options.html):
            write_atomic(options.html, as_html(comparison))
        print(f"\nwrote {options.html}")
    return 0
