"""The recorded runs of all studies, and the paper's numbers."""

import csv
import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from emea.errors import DataError
from emea.results.recorded_run import RecordedRun, load_record_folders
from experiments.archive.study import find_studies, is_study, read_study
from experiments.origins import is_of_committed_code

logger = logging.getLogger(__name__)

PaperNumbers = dict[tuple[str, float, str], dict[str, float]]
"""Published metrics by (data, ratio, method)."""


def official(data: str) -> str:
    """Return the name of a pair on its official folds."""
    return f"{data} (official folds)"


def load_records(folder: Path) -> list[RecordedRun]:
    """Return every finished run of a study, ordered by name.

    Raises:
        DataError: If the study has no recorded run.
    """
    return [
        RecordedRun(
            run.name,
            folder.name,
            run.metrics,
            run.header,
            run.ranks,
            partial(getattr, run, "links_checksum"),
        )
        for run in read_study(folder)
    ]


def load_runs(folders: Iterable[Path]) -> list[RecordedRun]:
    """Return the finished runs of run folders and studies, by start time; each counts once.

    Raises:
        DataError: If a folder contains no finished run.
    """
    found: dict[str, RecordedRun] = {}
    for folder in folders:
        runs = (
            load_records(folder) if is_study(folder) else load_record_folders([folder])
        )
        if not runs:
            raise DataError(f"{folder} contains no finished run")
        for run in runs:
            found.setdefault(run.run_id or f"{folder} {run.name}", run)
    return sorted(found.values(), key=lambda run: run.started)


def load_committed(folder: Path) -> list[RecordedRun]:
    """Return the runs of a study that were made with committed code and have test results."""
    runs, left_out = [], []
    for run in load_records(folder):
        if not is_of_committed_code(run.header["tags"]):
            left_out.append(run.name)
        elif run.metrics["final"]["hit@1"] is not None:
            runs.append(run)
    if left_out:
        names = ", ".join(left_out)
        logger.warning(
            "%s: ignoring runs made with uncommitted code: %s", folder, names
        )
    if not runs:
        raise DataError(
            f"{folder} contains no recorded runs made with committed code. Commit your changes and "
            "record the runs again."
        )
    return runs


def load_studies(experiments: Path) -> list[RecordedRun]:
    """Return the recorded runs of all studies. Reports read runs through this function only."""
    studies = find_studies([experiments])
    return [run for folder in studies for run in load_committed(folder)]


def load_paper_numbers(path: Path) -> PaperNumbers:
    """Read a CSV file with columns data, ratio, method and one column per metric.

    Lines that start with ``#`` are comments. Empty cells are left out.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    numbers: PaperNumbers = {}
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        key = (row.pop("data"), float(row.pop("ratio")), row.pop("method"))
        numbers[key] = {metric: float(value) for metric, value in row.items() if value}
    return numbers
