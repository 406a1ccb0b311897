"""What the benchmarks have in common: the command line, and the file for the numbers."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emea.record.checked_files import write_json
from emea.record.provenance import provenance


def bench_parser(
    name: str, description: str | None, has_file: bool = True
) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's command line.

    Args:
        name: The benchmark, as in ``python -m benchmarks NAME``.
        description: The text that ``--help`` shows.
        has_file: Whether ``--json FILE`` is an option.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if has_file:
        parser.add_argument("--json", type=Path, help="file for the numbers")
    return parser


def write_numbers(file: Path | None, numbers: Mapping[str, Any]) -> None:
    """Write the numbers with code and machine, if a file is given."""
    if file is not None:
        write_json(file, {**numbers, **provenance()})
