"""Recorded runs: their metrics, configuration, code version and machine."""

import csv
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from emea.data.arrays import FloatArray
from emea.errors import DataError
from emea.record.provenance import is_of_committed_code
from emea.record.run_folder import RANKS_FILE, read_metrics, read_ranks
from emea.record.run_record import read_run_file
from emea.record.study import find_studies, is_study, read_study

logger = logging.getLogger(__name__)

RUN_FILES = ("metrics.json", "run.json")

PaperNumbers = dict[tuple[str, float, str], dict[str, float]]
"""Published metrics by (data, ratio, method)."""


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """One finished run. Two records are equal only if they are the same object.

    Args:
        name: The run's name in reports.
        study: The study that the run belongs to; empty if none.
        metrics: The content of ``metrics.json``.
        header: The content of ``run.json``.
        read_ranks: Reads the ranks of the test links at a stage, if they were recorded.
        read_links: Reads the checksum of the test links, if it was recorded.
    """

    name: str
    study: str
    metrics: dict[str, Any]
    header: dict[str, Any]
    read_ranks: Callable[[str], FloatArray | None] = field(default=lambda stage: None, repr=False)
    read_links: Callable[[], str | None] = field(default=lambda: None, repr=False)

    @property
    def run_id(self) -> str:
        """The run's id; empty if it was recorded without one."""
        return str(self.header.get("run_id", ""))

    @property
    def started(self) -> int:
        """The start time in milliseconds since the epoch."""
        return int(self.header.get("start_time", 0))

    def value(self, metric: str, pool: str = "test", stage: str = "final") -> float | None:
        """Return a metric of a ranking among test targets or all targets.

        ``None`` means that the method has no such metric: PARIS and PRASE do not rank.
        """
        ranking = self.metrics[stage]
        number: float | None = (ranking if pool == "test" else ranking["all_targets"])[metric]
        return number

    def ranks(self, stage: str = "final") -> FloatArray | None:
        """Return the rank of each test link's target among test targets, if it was recorded."""
        # without EM, the initial and the final ranking are the same
        return self.read_ranks("final" if self.metrics["method"] == "neural" else stage)

    def tested_links(self) -> tuple[str, str] | None:
        """Return the checksums of the data and of the test links that the ranks belong to.

        Ranks of two runs can be paired if these are equal. ``None`` means that they are unknown.
        """
        data, links = self.header["tags"].get("data_checksum"), self.read_links()
        return None if data is None or links is None else (data, links)


def load_run(folder: Path) -> RecordedRun:
    """Read a run folder."""
    metrics, header = read_metrics(folder), read_run_file(folder)
    name, study = str(header.get("name", "")), str(header["params"].get("study", ""))
    ranks, links = partial(_ranks_in, folder), partial(_links_in, folder)
    return RecordedRun(name, study, metrics, header, ranks, links)


def _links_in(folder: Path) -> str | None:
    return read_ranks(folder)[1] if (folder / RANKS_FILE).exists() else None


def _ranks_in(folder: Path, stage: str) -> FloatArray | None:
    if not (folder / RANKS_FILE).exists():
        return None
    found = read_ranks(folder)[0].get(f"{stage}_in_pool")
    return None if found is None else found.astype(np.float64)


def load_run_folders(folders: Iterable[Path]) -> list[RecordedRun]:
    """Return the finished runs at or below the folders, and those of studies, by start time.

    A run that is in a folder and in a study counts once.

    Raises:
        DataError: If a folder contains no finished run.
    """
    found: dict[Path, RecordedRun] = {}
    for folder in folders:
        if is_study(folder):
            runs = {folder.resolve() / run.name: run for run in load_records(folder)}
        else:
            places = [file.parent for file in sorted(folder.glob("**/metrics.json"))]
            places = [place for place in places if (place / "run.json").is_file()]
            runs = {place.resolve(): load_run(place) for place in places}
        if not runs:
            raise DataError(f"{folder} contains no finished run ({' and '.join(RUN_FILES)})")
        found |= runs
    distinct: dict[str, RecordedRun] = {}
    for place, run in found.items():
        distinct.setdefault(run.run_id or str(place), run)
    return sorted(distinct.values(), key=lambda run: run.started)


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


def load_committed(folder: Path) -> list[RecordedRun]:
    """Return the runs of a study that were made with committed code and have test results."""
    runs, left_out = [], []
    for run in load_records(folder):
        if not is_of_committed_code(run.header["tags"]):
            left_out.append(run.name)
        elif run.value("hit@1") is not None:
            runs.append(run)
    if left_out:
        names = ", ".join(left_out)
        logger.warning("%s: ignoring runs made with uncommitted code: %s", folder, names)
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


def machine_of(tags: Mapping[str, Any]) -> str:
    """Return the GPU, or the number of CPU cores, or ``unknown`` if it was not recorded."""
    if tags.get("gpu"):
        return str(tags["gpu"])
    if "cpu_count" not in tags:
        return "unknown"
    return f"{tags['cpu_count']} {tags['machine']} cores"


def short_commit(tags: Mapping[str, Any]) -> str:
    """Return the first ten digits of the commit."""
    return str(tags["commit"])[:10]


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
