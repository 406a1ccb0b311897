"""What the benchmarks have in common: the command line, and files for new and recorded numbers."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emea.record.checked_files import write_json
from emea.record.provenance import provenance
from experiments.archive.measurements import read_measurements
from experiments.archive.study import EXPERIMENTS
from experiments.origins import machine_of, short_commit


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


def print_earlier(
    kind: str, key: str, value: float, folder: Path = EXPERIMENTS / "speed"
) -> None:
    """Print the recorded values of a number, and the new value relative to each.

    Args:
        kind: The benchmark, which is the prefix of the names of its measurements.
        key: The name of the number.
        value: The new value.
        folder: The folder of the recorded measurements; it need not exist.
    """
    for measurement in read_measurements(folder, f"{kind}_").values():
        recorded = measurement.get(key)
        if recorded:
            where = f"{machine_of(measurement)}, commit {short_commit(measurement)}"
            print(f"  recorded {recorded:.2f} ({where}): ratio {value / recorded:.2f}")
