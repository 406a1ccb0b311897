"""Alignments of a finished run, without training: ``python -m emea.predict RUN``."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from emea.errors import UserError
from emea.pipeline.config_files import option_names
from emea.pipeline.validation import EXPORT_FORMATS

EXAMPLES = """examples:
  python -m emea.predict RUN --formats nt sssom jsonl --top-k 5
  python -m emea.predict RUN --target-precision 0.95
  python -m emea.predict RUN --decoding hungarian --threshold 0.5 --out answers

RUN is the folder of a finished run. Its data must lie where the run found it. What is not given
is as the run had it; --threshold 0 answers as much as the decoding does."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files that the arguments ask for; the exit status."""
    options = make_parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        _write(options)
    except (UserError, OSError) as error:  # OSError: a folder that cannot be written to
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _write(options: argparse.Namespace) -> None:
    # torch loads here, so that --help and a mistyped option answer at once
    from emea.pipeline.export_settings import export_settings
    from emea.pipeline.finished_run import load_run
    from emea.pipeline.predicting import predict
    from emea.pipeline.result_table import answered_line

    run = load_run(options.run, options.trust)
    settings = export_settings(run.config).with_given(
        options.formats, options.top_k, options.threshold, options.target_precision
    )
    folder = options.out or options.run / "predictions"
    numbers, files = predict(run, folder, settings, options.decoding)
    print(answered_line(numbers))
    print(*files, sep="\n")


def make_parser() -> argparse.ArgumentParser:
    """What the command line may hold."""
    parser = argparse.ArgumentParser(
        prog="python -m emea.predict",
        description="Writes the alignment of a finished run, in any format, without training.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run")
    parser.add_argument(
        "--trust", nargs="+", default=[], metavar="MODULE", help="modules of your own it may name"
    )
    parser.add_argument(
        "--formats",
        nargs="+",
        choices=EXPORT_FORMATS,
        help="beside alignment.tsv: owl:sameAs N-Triples, SSSOM, JSON Lines",
    )
    parser.add_argument(
        "--top-k",
        type=_positive,
        metavar="K",
        help="candidates of each source entity in alignment.jsonl",
    )
    _add_threshold(parser)
    parser.add_argument(
        "--decoding",
        choices=option_names("decoding"),
        help="how beliefs become an answer; csls and cosine both take the best candidate",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where to write (default: RUN/predictions)"
    )
    return parser


def _add_threshold(parser: argparse.ArgumentParser) -> None:
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--threshold",
        type=_share,
        metavar="P",
        help="least probability of an answer; who stays below is unmatched",
    )
    either.add_argument(
        "--target-precision",
        type=_share,
        metavar="P",
        help="choose the threshold that reaches this precision on the validation links",
    )


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, got {text}")
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
