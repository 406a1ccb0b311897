"""Arguments of the commands that read a finished run."""

import argparse
from pathlib import Path


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder of the run and the modules that it may use."""
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run")
    parser.add_argument(
        "--trust",
        nargs="+",
        default=[],
        metavar="MODULE",
        help="your own modules that the run may use",
    )
