"""``emea predict RUN`` writes the alignment of a finished run, without training."""

import logging
from collections.abc import Sequence

from emea.cli.arguments import (
    EITHER,
    add_answer_arguments,
    add_formats_argument,
    add_out_argument,
    run_options,
    run_parser,
)
from emea.config.composition import option_names
from emea.config.paths import check_no_link
from emea.config.settings.execution import EXPORT_FORMATS
from emea.errors import writing

ANSWER = (*EITHER, "top_k", "least_inclusion", "vocabulary", "close_below")
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
    description = "Write the alignment of a finished run, in any format, without training."
    parser = run_parser("predict", description, EXAMPLES)
    add_formats_argument(parser, EXPORT_FORMATS, None)
    add_answer_arguments(parser, ANSWER)
    decodings, help = option_names("decoding"), "how matches are selected from the candidates"
    parser.add_argument("--decoding", choices=decodings, help=help)
    add_out_argument(parser, "RUN/predictions")
    options = run_options(parser, arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    # torch is imported after the command line and the folder were checked.
    from emea.answer.decision import with_given
    from emea.data.protocol import seen_links
    from emea.run.finished_run import load_run
    from emea.run.parts import export_settings
    from emea.run.predicting import predict
    from emea.run.result_table import answered_line

    run = load_run(options.run, options.trust)
    given = {name: getattr(options, name) for name in ("formats", *ANSWER)}
    settings = with_given(export_settings(run.config), **given)
    folder = options.out or options.run / "predictions"
    check_no_link(folder)
    with writing(folder):
        numbers, files = predict(run, folder, settings, options.decoding)
    protocol = run.metrics["protocol"]
    print(f"{answered_line(numbers)} [protocol {protocol}: {seen_links(protocol)}]")
    print(*files, sep="\n")
    return 0
