"""``emea show RUN`` writes the alignment of a finished run as one HTML page and opens it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from emea.cli.arguments import add_force_argument, run_options, run_parser
from emea.record.outputs import PAGE, locked_file
from emea.runtime.console import say

if TYPE_CHECKING:
    from emea.explain.explainer import Explainer

PAGE_FILE = "alignment.html"

DESCRIPTION = """Write the whole alignment of a finished run as one HTML page and open it: charts,
a table of all source entities, the explanation of each match, and decisions to accept, reject or
correct matches. The page works offline and loads nothing."""

EXAMPLES = """examples:
  emea show RUN
  emea show RUN --out alignment.html --no-open

RUN is the folder of a finished run."""


def main(arguments: Sequence[str]) -> int:
    """Write the page, open it and return the exit status."""
    parser = run_parser("show", DESCRIPTION, EXAMPLES)
    help = "output file (default: alignment.html in the folder of the run)"
    parser.add_argument("--out", type=Path, metavar="FILE", help=help)
    parser.add_argument(
        "--no-open",
        dest="opened",
        action="store_false",
        help="write the page without opening it",
    )
    add_force_argument(parser)
    options = run_options(parser, arguments)
    place: Path = options.out or options.run / PAGE_FILE
    with locked_file(place, options.force, is_default=options.out is None, kind=PAGE):
        # torch is imported after the command line and the folder were checked.
        from emea.explain.explainer import Explainer
        from emea.run.finished_run import load_run

        explainer = Explainer(load_run(options.run, options.trust))
        show(explainer, options.run, place, options.opened)
    return 0


def show(
    explainer: "Explainer",
    folder: Path,
    path: Path | None = None,
    is_opened: bool = True,
) -> None:
    """Write the page of a run and print its path.

    Args:
        explainer: Explains pairs of the run.
        folder: The folder of the run.
        path: The file; ``None`` means in the folder of the run.
        is_opened: Whether to open the page.
    """
    from emea.explain.alignment_page import run_page, write_page

    place = path or folder / PAGE_FILE
    write_page(run_page(explainer, folder), place, is_opened)
    say(f"Page: {place}")
