"""Finished runs of a user, in run folders."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from emea.config.instantiate import check_trusted
from emea.data.arrays import FloatArray
from emea.errors import DataError
from emea.record.pair_file import pair_of_run
from emea.record.run_folder import (
    METRICS_FILE,
    RANKS_FILE,
    read_config,
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
from emea.runtime.deprecated import renamed


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
        read_names: Reads the names of both entities of each ranked test link from the data.
    """

    name: str
    study: str
    metrics: dict[str, Any]
    header: dict[str, Any]
    read_ranks: Callable[[str], FloatArray | None] = field(
        default=lambda stage: None, repr=False
    )
    read_links: Callable[[], str | None] = field(default=lambda: None, repr=False)
    read_names: Callable[[], list[tuple[str, str]]] = field(default=list, repr=False)

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
        return self.read_ranks(
            "final" if self.metrics.get("method") == "neural" else stage
        )

    def tested_links(self) -> tuple[str, str] | None:
        """Return the checksums of the data and of the test links that the ranks belong to.

        Ranks of two runs can be paired if these are equal. ``None`` means that they are unknown.
        """
        data = self.header["tags"].get("data_checksum")
        links = self.read_links()
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


def load_record(folder: Path) -> RecordedRun:
    """Read a run folder."""
    header = {**read_run_file(folder), **asdict(read_header(folder))}
    metrics = read_metrics(folder)
    name = str(header.get("name", ""))
    study = str(header["params"].get("study", ""))
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
    run = load_record(folder)
    return replace(
        run, name=folder.resolve().name, read_names=partial(_link_names, folder)
    )


def _link_names(folder: Path) -> list[tuple[str, str]]:
    """Return the names of the ranked test links of a run.

    Raises:
        UserError: If the data cannot be read, or changed since the run.
    """
    config = read_config(folder)
    config.trust = []  # the list in an untrusted folder does not count
    check_trusted(config)
    pair = pair_of_run(folder, config)
    if pair.checksum() != read_header(folder).tags.get("data_checksum"):
        raise DataError(f"the data of {pair.name} changed since the run in {folder}")
    links = read_ranks(folder)[0]["links"]
    sources = pair.source.all_entity_names
    targets = pair.target.all_entity_names
    return [(sources[source], targets[target]) for source, target in links.tolist()]


def _ranks_in(folder: Path, stage: str) -> FloatArray | None:
    found = read_ranks(folder)[0].get(f"{stage}_in_pool")
    return None if found is None else found.astype(np.float64)


def load_record_folders(folders: Iterable[Path]) -> list[RecordedRun]:
    """Return the finished runs at or below the folders, each once, by start time.

    Raises:
        DataError: If a folder contains no finished run.
    """
    distinct: dict[str, RecordedRun] = {}
    for folder in folders:
        places = [file.parent for file in sorted(folder.glob(f"**/{METRICS_FILE}"))]
        places = list(filter(is_run_folder, places))
        if not places:
            raise DataError(
                f"{folder} contains no finished run ({METRICS_FILE} and {RUN_FILE})"
            )
        for place in places:
            run = load_record(place)
            distinct.setdefault(run.run_id or str(place.resolve()), run)
    return sorted(distinct.values(), key=lambda run: run.started)


if not TYPE_CHECKING:
    __getattr__ = renamed(
        __name__,
        {"load_run": "load_record", "load_run_folders": "load_record_folders"},
        removal="0.4",
    )
