"""Prints recorded measurements next to new ones."""

from pathlib import Path

from emea.record.provenance import machine_of, short_commit
from experiments.archive.measurements import read_measurements

RECORDED = Path(__file__).resolve().parents[1] / "experiments" / "speed"


def print_earlier(kind: str, key: str, value: float, folder: Path = RECORDED) -> None:
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
