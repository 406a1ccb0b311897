"""``emea predict RUN`` writes the alignment of a finished run, without training."""

import argparse
import logging
from collections.abc import Sequence

from emea.cli.arguments import (
    AT_LEAST_ONE,
    add_formats_argument,
    add_out_argument,
    add_run_arguments,
    add_threshold_arguments,
    command_parser,
    number_in,
)
from emea.config.composition import option_names
from emea.config.paths import check_no_link
from emea.config.settings.execution import EXPORT_FORMATS, VOCABULARIES
from emea.config.settings.setting import SHARE, SHARE_ABOVE_ZERO
from emea.errors import writing
from emea.record.run_record import check_finished

EXAMPLES = """examples:
  emea predict RUN --formats nt sssom jsonl --top-k 5
  emea predict RUN --target-precision 0.95
  emea predict RUN --decoding hungarian --threshold 0.5 --out answers

RUN is the folder of a finished run. It contains your own graphs. Public data sets are read from the
same place as before, or from the folder that the variable EMEA_DATA names.
Options that you leave out keep the settings of the run. --threshold 0 accepts every match."""


def main(arguments: Sequence[str]) -> int:
    """Write the requested files and return the exit status."""
    options = make_parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    check_finished(options.run)
    # torch is imported after the command line and the folder were checked.
    from emea.answer.decision import with_given
    from emea.data.protocol import seen_links
    from emea.run.finished_run import load_run
    from emea.run.parts import export_settings
    from emea.run.predicting import predict
    from emea.run.result_table import answered_line

    run = load_run(options.run, options.trust)
    settings = with_given(
        export_settings(run.config),
        formats=options.formats,
        top_k=options.top_k,
        threshold=options.threshold,
        target_precision=options.target_precision,
        least_inclusion=options.least_inclusion,
        vocabulary=options.vocabulary,
        close_below=options.close_below,
    )
    folder = options.out or options.run / "predictions"
    check_no_link(folder)
    with writing(folder):
        numbers, files = predict(run, folder, settings, options.decoding)
    protocol = run.metrics["protocol"]
    print(f"{answered_line(numbers)} [protocol {protocol}: {seen_links(protocol)}]")
    print(*files, sep="\n")
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Build the parser of the command."""
    description = "Write the alignment of a finished run, in any format, without training."
    parser = command_parser("predict", description, EXAMPLES)
    add_run_arguments(parser)
    add_formats_argument(parser, EXPORT_FORMATS, None)
    parser.add_argument(
        "--top-k",
        type=number_in(AT_LEAST_ONE, int),
        metavar="K",
        help="candidates per source entity in alignment.jsonl",
    )
    add_threshold_arguments(parser)
    parser.add_argument(
        "--least-inclusion",
        type=number_in(SHARE_ABOVE_ZERO, float),
        metavar="P",
        help="minimum probability of an inclusion of relations or classes that is stated",
    )
    parser.add_argument(
        "--vocabulary",
        choices=VOCABULARIES,
        help="predicates of matches in N-Triples and SSSOM: owl:sameAs or skos:exactMatch",
    )
    parser.add_argument(
        "--close-below",
        type=number_in(SHARE, float),
        metavar="P",
        help="state matches below this probability as skos:closeMatch",
    )
    parser.add_argument(
        "--decoding",
        choices=option_names("decoding"),
        metavar=f"{{{','.join(option_names('decoding'))}}}",
        help="how matches are selected from the candidates",
    )
    add_out_argument(parser, "RUN/predictions")
    return parser
