"""``emea suggest RUN`` ranks the entities whose label would help most, and writes a review page."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from emea.cli.arguments import (
    AT_LEAST_ONE,
    add_out_argument,
    number_in,
    run_options,
    run_parser,
)
from emea.config.paths import check_no_link
from emea.errors import writing

if TYPE_CHECKING:
    from rich.table import Table

    from emea.explain.explainer import Explainer
    from emea.suggest import Suggestion

DEFAULT_COUNT, PAGE_FILE = 20, "review.html"

DESCRIPTION = """Rank the entities of a finished run whose label would help most: those that are
uncertain and whose match would determine uncertain neighbours. Write them as a table and as a page
on which a person accepts or rejects candidates."""

EXAMPLES = """examples:
  emea suggest RUN --count 20
  emea suggest RUN --count 50 --out review

RUN is the folder of a finished run. Open review.html in a browser, decide, and save links.tsv and
rejected.tsv. Then continue the run with them:
  emea update RUN --links links.tsv --rejected rejected.tsv"""


def main(arguments: Sequence[str]) -> int:
    """Write the suggestions and return the exit status."""
    parser = run_parser("suggest", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--count",
        type=number_in(AT_LEAST_ONE, int),
        default=DEFAULT_COUNT,
        metavar="N",
        help="number of suggestions (default: %(default)s)",
    )
    add_out_argument(parser, "RUN/suggestions")
    options = run_options(parser, arguments)
    # torch is imported after the command line and the folder were checked.
    from rich.console import Console

    from emea.explain.alignment_page import View, alignment_page, write_page
    from emea.explain.explainer import Explainer
    from emea.run.finished_run import load_run
    from emea.suggest import LEAST_UNCERTAINTY, reason, suggest, write_suggestions

    explainer = Explainer(load_run(options.run, options.trust))
    suggestions = suggest(explainer, options.count)
    folder = options.out or options.run / "suggestions"
    check_no_link(folder)
    with writing(folder):
        files = write_suggestions(folder, explainer.run.pair, suggestions)
    chosen = [(one.source, reason(one)) for one in suggestions]
    view = View("What to label next", "To label", chosen)
    page = alignment_page(explainer, options.run, view=view)
    write_page(page, folder / PAGE_FILE, is_opened=False)
    Console(highlight=False).print(_table(explainer, suggestions))
    if len(suggestions) < options.count:
        certain = 1 - LEAST_UNCERTAINTY
        print(f"All other entities have a link, or a match with a probability above {certain:g}.")
    print(*files, folder / PAGE_FILE, sep="\n")
    return 0


def _table(explainer: "Explainer", suggestions: "Sequence[Suggestion]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("score", "uncertainty", "influence"):
        table.add_column(title, justify="right")
    table.add_column("entity", overflow="fold")
    table.add_column("best candidate", overflow="fold")
    for one in suggestions:
        best = "-"
        if one.candidates:
            target, prob = one.candidates[0]
            best = f"{explainer.target.entity(target).short} ({prob:.2f})"
        numbers = (f"{value:.2f}" for value in (one.score, one.uncertainty, one.influence))
        source = explainer.source.entity(one.source).short
        table.add_row(*numbers, Text(source), Text(best))
    return table
