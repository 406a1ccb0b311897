"""``emea predict RUN`` writes the alignment of a finished run, without training."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from emea.answer.settings import EXPORT_FORMATS
from emea.cli.arguments import (
    EITHER,
    add_answer_arguments,
    add_force_argument,
    add_formats_argument,
    add_out_argument,
    run_options,
    run_parser,
)
from emea.config.composition import option_names
from emea.errors import writing
from emea.record.outputs import locked_results
from emea.record.run_folder import ANSWER_FILES, NUMBERS_FILE
from emea.runtime.console import say, warn_on

ANSWER = (*EITHER, "top_k", "least_inclusion", "vocabulary", "close_below", "license")
"""Settings of the answer that can replace those of the run."""

EXAMPLES = """examples:
  emea predict RUN --formats nt sssom jsonl --top-k 5
  emea predict RUN --target-precision 0.95
  emea predict RUN --decoding hungarian --threshold 0.5 --out answers

RUN is the folder of a finished run. It contains your own graphs. Public data sets are read from the
same place as before, or from the folder that the variable EMEA_DATA names.
Options that you leave out keep the settings of the run. --threshold 0 accepts every match."""


def main(arguments: Sequence[str]) -> int:
    """Write the requested files and return the exit status."""
    description = (
        "Write the alignment of a finished run, in any format, without training."
    )
    parser = run_parser("predict", description, EXAMPLES)
    add_formats_argument(parser, EXPORT_FORMATS, None)
    add_answer_arguments(parser, ANSWER)
    decodings = option_names("decoding")
    help = "how matches are selected from the candidates"
    parser.add_argument("--decoding", choices=decodings, help=help)
    add_out_argument(parser, "RUN/predictions")
    add_force_argument(parser)
    options = run_options(parser, arguments)
    warn_on()
    folder: Path = options.out or options.run / "predictions"
    names = (*ANSWER_FILES, NUMBERS_FILE)
    with locked_results(folder, NUMBERS_FILE, names, options.force):
        _predict(options, folder)
    return 0


def _predict(options: argparse.Namespace, folder: Path) -> None:
    """Write the requested files into the folder, and print their names."""
    # torch is imported after the command line and the folder were checked.
    from emea.answer.decision import with_given
    from emea.data.protocol import seen_links
    from emea.run.finished_run import load_run
    from emea.run.predicting import predict
    from emea.run.result_table import answered_line

    run = load_run(options.run, options.trust)
    given = {name: getattr(options, name) for name in ("formats", *ANSWER)}
    settings = with_given(run.settings.own.export, **given)
    with writing(folder):
        numbers, files = predict(run, folder, settings, options.decoding)
    protocol = run.metrics["protocol"]
    line = answered_line(numbers)
    # without test links there is nothing that a run could have seen
    has_test = len(run.split.test) > 0
    say(f"{line} [protocol {protocol}: {seen_links(protocol)}]" if has_test else line)
    say(*files)
