"""Finished runs of a user: those in run folders and in an MLflow store."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from emea.data.arrays import FloatArray
from emea.errors import DataError
from emea.record.mlflow_store import open_client
from emea.record.run_folder import (
    RANKS_FILE,
    links_checksum,
    read_config,
    read_metrics,
    read_ranks,
)
from emea.record.run_record import check_finished, read_run_file
from emea.record.store_uri import DEFAULT_URI, shown_uri, sqlite_path, without_login

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

RUN_FILES = ("metrics.json", "run.json")
LinkNames = tuple[list[str], list[str]]
"""Names of the source and the target entities of the test links, in the order of their ranks."""

FINISHED, PAGE = "attributes.status = 'FINISHED'", 1000


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
        read_names: Reads the names of the test links' entities, which needs the data set.
    """

    name: str
    study: str
    metrics: dict[str, Any]
    header: dict[str, Any]
    read_ranks: Callable[[str], FloatArray | None] = field(default=lambda stage: None, repr=False)
    read_links: Callable[[], str | None] = field(default=lambda: None, repr=False)
    read_names: Callable[[], LinkNames] = field(default=lambda: ([], []), repr=False)

    @property
    def run_id(self) -> str:
        """The run's id; empty if it was recorded without one."""
        return str(self.header.get("run_id", ""))

    @property
    def started(self) -> int:
        """The start time in milliseconds since the epoch."""
        return int(self.header.get("start_time", 0))

    def place(self) -> dict[str, Any]:
        """Return the pair, the ratio and the seed of the split.

        The seed of an official split is its fold, its ratio is the share of training links, and its
        pair is named as such, because drawn splits of the same pair have other links. If all links
        are test links, the ratio is 0.
        """
        drawn = {key: self.metrics.get(key) for key in ("data", "ratio", "split_seed")}
        if self.metrics.get("split") == "none":
            return {**drawn, "ratio": 0.0}
        fold, counts = self.header["params"].get("data.fold"), self.metrics.get("num_links")
        if self.metrics.get("split") != "official" or fold is None or not counts:
            return drawn
        ratio = round(counts["train"] / sum(counts.values()), 4)
        return {"data": official(self.metrics["data"]), "ratio": ratio, "split_seed": int(fold)}

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


def official(data: str) -> str:
    """Return the name of a pair on its official folds."""
    return f"{data} (official folds)"


def number_at(metrics: Mapping[str, Any], path: str) -> float | None:
    """Return the number at a dotted path into metrics; ``None`` if there is none."""
    found: Any = metrics
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return float(found) if isinstance(found, int | float) else None


def load_run(folder: Path) -> RecordedRun:
    """Read a run folder."""
    metrics, header = read_metrics(folder), read_run_file(folder)
    name, study = str(header.get("name", "")), str(header["params"].get("study", ""))
    return RecordedRun(
        name,
        study,
        metrics,
        header,
        partial(_ranks_in, folder),
        partial(_links_in, folder),
        partial(_names_in, folder),
    )


def load_compared_run(folder: Path) -> RecordedRun:
    """Return the finished run in a folder, named after the folder.

    Raises:
        UserError: If there is no run, or it is unfinished or damaged.
    """
    check_finished(folder)
    return replace(load_run(folder), name=folder.resolve().name)


def _links_in(folder: Path) -> str | None:
    return read_ranks(folder)[1] if (folder / RANKS_FILE).exists() else None


def _names_in(folder: Path) -> LinkNames:
    """Return the names of a run's test links, read from its data.

    Raises:
        UserError: If the data is missing, or has other links.
    """
    from emea.config.instantiate import factory
    from emea.record.pair_file import pair_of_run

    config = read_config(folder)
    config.trust = []
    if "root" in config.data and not Path(config.data.root).exists():
        config.data.root = os.environ.get("EMEA_DATA", "data")
    pair = pair_of_run(folder, config)
    if pair.checksum() != read_run_file(folder)["tags"].get("data_checksum"):
        raise DataError(f"the data of {pair.name} changed since the run")
    arrays, checksum = read_ranks(folder)
    links = arrays.get("links")
    if links is None:  # a run restored from an archive has only their checksum
        links = factory(config.split)(pair).test
    if checksum is None or links_checksum(links) != checksum:
        raise DataError(f"the test links of {pair.name} changed since the run")
    source, target = (
        [graph.entity_name(entity) for entity in entities.tolist()]
        for graph, entities in zip((pair.source, pair.target), links.T, strict=True)
    )
    return source, target


def _ranks_in(folder: Path, stage: str) -> FloatArray | None:
    if not (folder / RANKS_FILE).exists():
        return None
    found = read_ranks(folder)[0].get(f"{stage}_in_pool")
    return None if found is None else found.astype(np.float64)


def load_run_folders(folders: Iterable[Path]) -> list[RecordedRun]:
    """Return the finished runs at or below the folders, each once, by start time.

    Raises:
        DataError: If a folder contains no finished run.
    """
    distinct: dict[str, RecordedRun] = {}
    for folder in folders:
        places = [file.parent for file in sorted(folder.glob("**/metrics.json"))]
        places = [place for place in places if (place / "run.json").is_file()]
        if not places:
            raise DataError(f"{folder} contains no finished run ({' and '.join(RUN_FILES)})")
        for place in places:
            run = load_run(place)
            distinct.setdefault(run.run_id or str(place.resolve()), run)
    return sorted(distinct.values(), key=lambda run: run.started)


def load_store(uri: str) -> list[RecordedRun]:
    """Return every finished run of an MLflow store whose files are available.

    Raises:
        DataError: If the store does not exist or contains no such run.
    """
    file = sqlite_path(uri)
    if file is not None and not file.is_file():
        raise DataError(f"{uri}: the file {file} does not exist")
    try:
        urlsplit(uri)
    except ValueError as error:
        raise DataError(f"--store is not a valid address: {error}") from error
    shown = shown_uri(uri)
    try:
        finished = _finished(open_client(uri))
    # MLflow, its database and the HTTP client raise different errors
    except Exception as error:
        reason = without_login(str(error).split("\n")[0].split(". ")[0], uri)
        raise DataError(
            f"{shown} cannot be read as an MLflow store, such as {DEFAULT_URI}: {reason}"
        ) from error
    runs = [run for one in finished if (run := _recorded(one, uri)) is not None]
    if not runs:
        raise DataError(
            f"{shown} contains no finished run with its files ({' and '.join(RUN_FILES)})"
        )
    return sorted(runs, key=lambda run: run.header["start_time"])


def _finished(client: "MlflowClient") -> list["Run"]:
    experiments = [found.experiment_id for found in client.search_experiments()]
    pages = [client.search_runs(experiments, FINISHED, max_results=PAGE)]
    while pages[-1].token:
        token = pages[-1].token
        page = client.search_runs(experiments, FINISHED, max_results=PAGE, page_token=token)
        pages.append(page)
    return [run for page in pages for run in page]


def _recorded(run: "Run", uri: str) -> RecordedRun | None:
    """Return a run of a store; ``None`` if it has no files, such as the parent of a sweep."""
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    try:
        # files of a local store are read in place, others are downloaded
        folder = Path(download_artifacts(run_id=run.info.run_id, tracking_uri=uri))
    except (OSError, MlflowException):
        return None
    return load_run(folder) if all((folder / name).is_file() for name in RUN_FILES) else None
