"""``emea explain RUN --pair A B`` shows why a finished run matched two entities."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from emea.cli.arguments import add_force_argument, run_options, run_parser
from emea.errors import DataError, writing
from emea.record.checked_files import write_atomic
from emea.record.outputs import EXPLANATIONS, PAGE, locked_file
from emea.runtime.console import say, terminal

if TYPE_CHECKING:
    from emea.explain.explainer import Explainer

DESCRIPTION = """Show why a finished run matched two entities: which neighbours support the pair and
by how much, what the runner-up lacks, and which entities claim the target."""


def main(arguments: Sequence[str]) -> int:
    """Explain the requested pairs and return the exit status."""
    parser = run_parser("explain", DESCRIPTION)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument(
        "--pair", nargs=2, metavar=("A", "B"), help="a source and a target entity"
    )
    help = "file of pairs, separated by a tab, such as rows of alignment.tsv"
    asked.add_argument("--pairs", type=Path, metavar="FILE", help=help)
    help = "a source entity and its match or best candidate"
    asked.add_argument("--entity", metavar="A", help=help)
    help = "also print weighted features and inclusions"
    parser.add_argument("--numbers", action="store_true", help=help)
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write everything as JSON"
    )
    help = "write the page of emea show, opened at these pairs"
    parser.add_argument("--html", type=Path, metavar="FILE", help=help)
    add_force_argument(parser)
    options = run_options(parser, arguments)
    files = [file for file in (options.json, options.html) if file is not None]
    if len(files) == 2 and files[0].resolve() == files[1].resolve():
        raise DataError("--json and --html name the same file. Choose two files.")
    with ExitStack() as stack:
        for file in files:
            kind = PAGE if file is options.html else EXPLANATIONS
            stack.enter_context(locked_file(file, options.force, kind=kind))
        _explain(options)
    return 0


def _explain(options: argparse.Namespace) -> None:
    """Write the requested files and print the explanations."""
    # torch is imported after the command line and the folder were checked.

    from emea.explain.alignment_page import alignment_page, asked_view
    from emea.explain.explainer import Explainer
    from emea.explain.page_content import shown_settings
    from emea.explain.text import json_text, print_explanations
    from emea.run.finished_run import load_run
    from emea.run.predicting import run_schema

    run = load_run(options.run, options.trust)
    explainer = Explainer(run)
    explanations = [explainer(*pair) for pair in _asked_pairs(explainer, options)]
    files = {}
    if options.json is not None:
        files[options.json] = json_text(run, explanations)
    if options.html is not None:
        schema = run_schema(run, shown_settings(run))
        view = asked_view(explanations)
        files[options.html] = alignment_page(explainer, options.run, schema, view)
    for path, text in files.items():
        with writing(path):
            write_atomic(path, text)
        say(f"Wrote {path}", file=sys.stderr)
    print_explanations(terminal(highlight=False), explanations, options.numbers)


def _asked_pairs(
    explainer: "Explainer", options: argparse.Namespace
) -> list[tuple[int, int]]:
    from emea.explain.entities import listed_pairs

    source = explainer.source
    target = explainer.target
    if options.pairs is not None:
        return listed_pairs(options.pairs, source, target)
    if options.pair is not None:
        return [(source.find(options.pair[0]), target.find(options.pair[1]))]
    entity = source.find(options.entity)
    best = explainer.best_target(entity)
    if best is None:
        raise DataError(
            f"{options.entity} has no candidate in this run. Name one with --pair."
        )
    return [(entity, best)]
