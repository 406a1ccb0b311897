"""Finished runs of a user, in run folders."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from emea.data.arrays import FloatArray
from emea.errors import DataError
from emea.record.run_folder import (
    METRICS_FILE,
    RANKS_FILE,
    read_metrics,
    read_ranks,
)
from emea.record.run_record import (
    RUN_FILE,
    check_finished,
    is_run_folder,
    read_header,
    read_run_file,
)


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

    def ranks(self, stage: str = "final") -> FloatArray | None:
        """Return the rank of each test link's target among test targets, if it was recorded."""
        # without EM, the initial and the final ranking are the same
        return self.read_ranks("final" if self.metrics.get("method") == "neural" else stage)

    def tested_links(self) -> tuple[str, str] | None:
        """Return the checksums of the data and of the test links that the ranks belong to.

        Ranks of two runs can be paired if these are equal. ``None`` means that they are unknown.
        """
        data, links = self.header["tags"].get("data_checksum"), self.read_links()
        return None if data is None or links is None else (data, links)


def number_at(metrics: Mapping[str, Any], path: str) -> float | None:
    """Return the number at a dotted path into metrics; ``None`` if there is none.

    A key may contain a dot itself, such as a precision.
    """
    if path in metrics:
        found = metrics[path]
        return float(found) if isinstance(found, int | float) else None
    key, _, rest = path.partition(".")
    inner = metrics.get(key)
    return number_at(inner, rest) if isinstance(inner, Mapping) else None


def load_run(folder: Path) -> RecordedRun:
    """Read a run folder."""
    metrics, header = read_metrics(folder), {**read_run_file(folder), **asdict(read_header(folder))}
    name, study = str(header.get("name", "")), str(header["params"].get("study", ""))
    has_ranks = (folder / RANKS_FILE).exists()
    return RecordedRun(
        name,
        study,
        metrics,
        header,
        partial(_ranks_in, folder) if has_ranks else lambda stage: None,
        lambda: read_ranks(folder)[1] if has_ranks else None,
    )


def load_compared_run(folder: Path) -> RecordedRun:
    """Return the finished run in a folder, named after the folder.

    Raises:
        UserError: If there is no run, or it is unfinished or damaged.
    """
    check_finished(folder)
    return replace(load_run(folder), name=folder.resolve().name)


def _ranks_in(folder: Path, stage: str) -> FloatArray | None:
    found = read_ranks(folder)[0].get(f"{stage}_in_pool")
    return None if found is None else found.astype(np.float64)


def load_run_folders(folders: Iterable[Path]) -> list[RecordedRun]:
    """Return the finished runs at or below the folders, each once, by start time.

    Raises:
        DataError: If a folder contains no finished run.
    """
    distinct: dict[str, RecordedRun] = {}
    for folder in folders:
        places = [file.parent for file in sorted(folder.glob(f"**/{METRICS_FILE}"))]
        places = list(filter(is_run_folder, places))
        if not places:
            raise DataError(f"{folder} contains no finished run ({METRICS_FILE} and {RUN_FILE})")
        for place in places:
            run = load_run(place)
            distinct.setdefault(run.run_id or str(place.resolve()), run)
    return sorted(distinct.values(), key=lambda run: run.started)
