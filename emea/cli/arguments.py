"""Arguments that several commands have, and their types."""

import argparse
import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from emea.answer.settings import ExportSettings
from emea.config.paths import check_writable
from emea.errors import UserError
from emea.record.checked_files import SUFFIX
from emea.record.run_folder import CONFIG_FILE, LOG_FILE, PAIR_FILE
from emea.record.run_record import LOCK_FILE, check_finished, is_run_folder
from emea.setting import KINDS, Range, settings_of

Number = TypeVar("Number", int, float)

AT_LEAST_ONE = Range(1)

PORTS = Range(1, 2**16 - 1)


def number_in(allowed: Range, kind: type[Number]) -> Callable[[str], Number]:
    """Return a ``type`` for argparse that accepts the numbers of a range.

    Args:
        allowed: The range.
        kind: ``int`` for whole numbers only, or ``float``.
    """

    def number(text: str) -> Number:
        with suppress(ValueError):
            value = kind(text)
            if allowed.holds(value):
                return value
        raise ArgumentTypeError(f"must be {KINDS[kind]} {allowed}, got {text}")

    return number


FIRST_FILES = {LOCK_FILE, LOG_FILE, CONFIG_FILE, PAIR_FILE}
"""Files that a run may have written before its record; a killed run leaves them."""


class _Parser(argparse.ArgumentParser):
    """Reports that standard output cannot be written. argparse ignores it and ends with 0."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message and file is sys.stdout and file is not None:
            file.write(message)
        else:
            super()._print_message(message, file)


def command_parser(
    name: str, description: str, examples: str = ""
) -> argparse.ArgumentParser:
    """Return the parser of a command; its help may end with examples."""
    return _Parser(
        prog=f"emea {name}",
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_out_argument(
    parser: argparse.ArgumentParser, shown: str, default: Path | None = None
) -> None:
    """Add the folder that the command writes.

    Args:
        parser: The parser of the command.
        shown: The default folder in the help.
        default: The default folder; ``None``: the command chooses it.
    """
    help = f"output folder (default: {shown})"
    parser.add_argument("--out", type=Path, default=default, metavar="DIR", help=help)


def add_force_argument(parser: argparse.ArgumentParser) -> None:
    """Add the permission to replace files that emea did not write."""
    help = "replace an existing file that emea did not write"
    parser.add_argument("--force", action="store_true", help=help)


def add_formats_argument(
    parser: argparse.ArgumentParser,
    formats: Sequence[str],
    default: Sequence[str] | None,
) -> None:
    """Add the file formats of an alignment."""
    parser.add_argument(
        "--formats",
        nargs="+",
        choices=formats,
        default=default,
        help="in addition to alignment.tsv: N-Triples, SSSOM, JSON Lines, Alignment RDF, vectors",
    )


def add_author_argument(parser: argparse.ArgumentParser) -> None:
    """Add the person who decided."""
    parser.add_argument(
        "--author",
        metavar="NAME",
        help="who found the links and rejected pairs: a name, an ORCID, or NAME <ORCID>; SSSOM "
        "files name this person",
    )


def run_parser(
    name: str, description: str, examples: str = ""
) -> argparse.ArgumentParser:
    """Return the parser of a command that reads a finished run and may use modules of the user."""
    parser = command_parser(name, description, examples)
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="folder of a finished run"
    )
    parser.add_argument(
        "--trust",
        nargs="+",
        default=[],
        metavar="MODULE",
        help="your own modules that the run may use",
    )
    return parser


def run_options(
    parser: argparse.ArgumentParser, arguments: Sequence[str]
) -> argparse.Namespace:
    """Parse the arguments of such a command; its run is checked before torch is imported."""
    options = parser.parse_args(arguments)
    check_finished(options.run)
    return options


def data_settings(files: Mapping[str, str]) -> list[str]:
    """Return the settings that name these files by their key, quoted for Hydra."""
    return [f"data.{key}={quoted(name)}" for key, name in files.items()]


def quoted(text: str) -> str:
    """Return a text as Hydra reads it from a command line."""
    # Hydra reads a backslash as an escape only in front of a quotation mark
    escaped = re.sub(r"(\\+)(?='|\Z)", r"\1\1", text).replace("'", r"\'")
    return f"'{escaped}'"


EITHER = ("threshold", "target_precision")
"""The two ways to choose which matches are accepted."""


def add_answer_arguments(
    parser: argparse.ArgumentParser, names: Sequence[str] = EITHER
) -> None:
    """Add settings of the answer as arguments of their names."""
    either = parser.add_mutually_exclusive_group()
    for one in settings_of(ExportSettings):
        if one.key not in names:
            continue
        values: dict[str, Any] = {"choices": one.allowed}
        if isinstance(one.allowed, Range):
            kind = int if one.kind is int else float
            values = {
                "type": number_in(one.allowed, kind),
                "metavar": "NP"[kind is float],
            }
        place = either if one.key in EITHER else parser
        place.add_argument(f"--{one.key.replace('_', '-')}", help=one.help, **values)


def check_output_folder(folder: Path) -> None:
    """Check that a run can be written to the folder.

    The folder may be missing or empty, or contain a run, also one that was killed at its start.

    Raises:
        UserError: If the folder is a file, contains other files, or cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file. Choose another --out folder.")
    if folder.is_dir() and not is_run_folder(folder):
        names = {path.name for path in folder.iterdir()}
        names = {
            name
            for name in names
            if not (name.startswith(".") and name.endswith(SUFFIX))
        }
        # a configuration or graphs without the lock are files of the user
        expected = FIRST_FILES if LOCK_FILE in names else {LOG_FILE}
        if names - expected:
            raise UserError(
                f"{folder} holds files that are not from emea. Choose another --out folder."
            )
    check_writable(folder)
