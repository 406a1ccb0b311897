"""Measurements of ``python -m benchmarks``, one line each in ``measurements.jsonl``."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from emea.errors import DataError
from emea.record.checked_files import json_object, write_atomic

MEASUREMENTS_FILE = "measurements.jsonl"

Measurement = dict[str, Any]


def read_measurements(folder: Path, kind: str = "") -> dict[str, Measurement]:
    """Return the measurements in a folder by their names, such as ``whole_run_zh_h200``.

    Args:
        folder: The folder of the file; it need not exist.
        kind: The benchmark, which is the prefix of the name; empty for all.

    Raises:
        DataError: If the file is damaged.
    """
    path = folder / MEASUREMENTS_FILE
    if not path.exists():
        return {}
    found: dict[str, Measurement] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            measurement = json_object(line)
            name = str(measurement.pop("name"))
        except (ValueError, KeyError) as error:
            raise DataError(f"{path}, line {number} is damaged: {error}.") from error
        found[name] = measurement
    return {name: found[name] for name in sorted(found) if name.startswith(kind)}


def add_measurements(folder: Path, files: Iterable[Path]) -> list[str]:
    """Add files of benchmarks (``--json``); a file replaces a measurement of its name.

    Returns:
        The names of the measurements, which are those of the files.

    Raises:
        DataError: If a file cannot be read.
    """
    new: dict[str, Measurement] = {}
    for path in files:
        try:
            new[path.stem] = json_object(path.read_bytes())
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise DataError(f"{path} is not a measurement: {error}.") from error
    kept = read_measurements(folder) | new
    lines = [{"name": name, **kept[name]} for name in sorted(kept)]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write_atomic(folder / MEASUREMENTS_FILE, text)
    return list(new)
