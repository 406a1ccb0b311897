"""``emea suggest RUN`` ranks the entities whose label would help most, and writes a review page."""

import argparse
import shlex
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from emea.answer.decided_pairs import read_decided
from emea.cli.arguments import (
    AT_LEAST_ONE,
    add_force_argument,
    add_out_argument,
    number_in,
    run_options,
    run_parser,
)
from emea.errors import UserError, writing
from emea.record.checked_files import write_lines
from emea.record.outputs import locked_results
from emea.runtime.console import printable, say, terminal
from emea.setting import SHARE

if TYPE_CHECKING:
    from rich.table import Table

    from emea.explain.explainer import Explainer
    from emea.suggest import Suggestion

DEFAULT_COUNT = 20
TSV_FILE, JSON_FILE, PAGE_FILE = "suggestions.tsv", "suggestions.jsonl", "review.html"
QUESTIONS_FILE = "questions.jsonl"

PAGE, JSONL = "page", "jsonl"

DESCRIPTION = """Rank the entities of a finished run whose label would help most: those that are
uncertain and whose match would determine uncertain neighbours. Write them as a table and as a page
on which a person accepts or rejects candidates. With --format jsonl, write questions about single
pairs instead, which a person, a script or a language model answers."""

EXAMPLES = """examples:
  emea suggest RUN --count 20
  emea suggest RUN --count 50 --out review
  emea suggest RUN --between 0.2 0.8 --format jsonl

RUN is the folder of a finished run. Open review.html in a browser, decide, and save links.tsv and
rejected.tsv. Then continue the run with them:
  emea update RUN --links links.tsv --rejected rejected.tsv

In questions.jsonl, replace each null after "answer" by "yes", "no" or "unsure". Then continue with:
  emea update RUN --decisions questions.jsonl"""


def main(arguments: Sequence[str]) -> int:
    """Write the suggestions and return the exit status."""
    parser = run_parser("suggest", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--count",
        type=number_in(AT_LEAST_ONE, int),
        default=DEFAULT_COUNT,
        metavar="N",
        help="number of suggestions, or of questions (default: %(default)s)",
    )
    parser.add_argument(
        "--between",
        type=number_in(SHARE, float),
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="only entities with a candidate whose probability is in this range",
    )
    parser.add_argument(
        "--format",
        choices=(PAGE, JSONL),
        default=PAGE,
        help="page: a table and a page; jsonl: questions about single pairs (default: "
        "%(default)s)",
    )
    add_out_argument(parser, "RUN/suggestions")
    add_force_argument(parser)
    options = run_options(parser, arguments)
    if options.between and options.between[0] > options.between[1]:
        parser.error("--between: LOW must not be larger than HIGH")
    folder: Path = options.out or options.run / "suggestions"
    if options.format == JSONL:
        names: tuple[str, ...] = (QUESTIONS_FILE,)
        _check_answers(folder / QUESTIONS_FILE, options.force)
    else:
        names = JSON_FILE, TSV_FILE, PAGE_FILE
    with locked_results(folder, names[0], names, options.force):
        _suggest(options, folder)
    return 0


def _check_answers(file: Path, force: bool) -> None:
    """Raise an error if a file has answers, which new questions would replace."""
    if force or not file.is_file():
        return
    earlier = read_decided(file)
    if earlier.decisions or earlier.cost is not None:
        raise UserError(
            f"{file} contains answers. Follow them with emea update --decisions, move the file, or "
            "replace it with --force."
        )


def _suggest(options: argparse.Namespace, folder: Path) -> None:
    """Write the suggestions into the folder, and print them."""
    # torch is imported after the command line and the folder were checked.

    from emea.explain.alignment_page import View, alignment_page, write_page
    from emea.explain.explainer import Explainer
    from emea.run.finished_run import load_run
    from emea.suggest import (
        LEAST_UNCERTAINTY,
        reason,
        sources_between,
        suggest,
        write_suggestions,
    )

    explainer = Explainer(load_run(options.run, options.trust))
    low, high = options.between or (0.0, 1.0)
    among = sources_between(explainer.run.beliefs, low, high)
    suggestions = suggest(explainer, options.count, among if options.between else None)
    if options.format == JSONL:
        say(*_write_questions(options, folder, explainer, suggestions))
        return
    with writing(folder):
        files = write_suggestions(folder, explainer.run.pair, suggestions)
    chosen = [(one.source, reason(one)) for one in suggestions]
    view = View("What to label next", "To label", chosen)
    page = alignment_page(explainer, options.run, view=view)
    write_page(page, folder / PAGE_FILE, is_opened=False)
    terminal(highlight=False).print(_table(explainer, suggestions))
    if len(suggestions) < options.count:
        certain = 1 - LEAST_UNCERTAINTY
        say(
            f"All other entities have a link, or a match with a probability above {certain:g}."
            if options.between is None
            else f"No other entity without a link has a candidate from {low:g} to {high:g}."
        )
    say(*files, folder / PAGE_FILE)


def _write_questions(
    options: argparse.Namespace,
    folder: Path,
    explainer: "Explainer",
    suggestions: "Sequence[Suggestion]",
) -> list[str]:
    """Write questions about the pairs of suggested entities, and return what to print."""
    from emea.explain.facts import Facts
    from emea.explain.questions import question_lines, unsure_pairs

    low, high = options.between or (0.0, 1.0)
    suggested = ((one.source, one.candidates) for one in suggestions)
    pairs = list(islice(unsure_pairs(suggested, low, high), options.count))
    sides = Facts(explainer.run.pair.source), Facts(explainer.run.pair.target)
    file = folder / QUESTIONS_FILE
    with writing(folder):
        write_lines(file, question_lines(pairs, *sides))
    return [
        f"Questions: {len(pairs):,} (probability from {low:g} to {high:g})",
        str(file),
        f"Answer them, then: emea update {shlex.quote(str(options.run))} --decisions "
        f"{shlex.quote(str(file))}",
    ]


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
        numbers = (
            f"{value:.2f}" for value in (one.score, one.uncertainty, one.influence)
        )
        source = explainer.source.entity(one.source).short
        table.add_row(*numbers, Text(printable(source)), Text(printable(best)))
    return table
