"""The files of a run folder."""

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from omegaconf import DictConfig, ListConfig, OmegaConf

from emea.answer.settings import ALIGNMENT_FILES, SCHEMA_FILES
from emea.config.composition import parsed_yaml
from emea.config.instantiate import texts_in
from emea.data.arrays import IntArray
from emea.errors import ConfigError, DataError
from emea.record.checked_files import (
    damaged,
    read_checked_arrays,
    read_checked_json,
    read_checked_yaml,
    read_file,
    sha256,
    write_checked_arrays,
    write_checked_json,
    write_checked_yaml,
)
from emea.record.file_names import ALIGNMENT_FILE as ALIGNMENT_FILE
from emea.record.file_names import CHECKPOINT_FILE as CHECKPOINT_FILE
from emea.record.file_names import DECISIONS_FILE as DECISIONS_FILE
from emea.record.metrics_schema import check_complete, check_values
from emea.record.store_uri import absolute_uri

if TYPE_CHECKING:
    from emea.evaluation.ranks import Ranks


CONFIG_FILE = "config.yaml"
METRICS_FILE = "metrics.json"
RANKS_FILE, BELIEFS_FILE, PAIR_FILE = "ranks.npz", "beliefs.npz", "pair.npz"
LOG_FILE = "run.log"
NUMBERS_FILE = "prediction.json"
PATHS = (
    *("data.source", "data.target", "data.links", "data.test_links", "data.rejected"),
    *("data.root", "data.division", "initial_from", "tracking.artifact_root"),
)
"""Settings that are paths. A run stores them as absolute paths, because later commands may start in
other folders."""

LINKS_CHECKSUM = "links_checksum"
"""The array of a ranks file that has the checksum of the test links, as text."""


def write_config(folder: Path, config: DictConfig) -> None:
    """Write the resolved configuration, with absolute paths, and its checksum."""
    resolved = OmegaConf.create(OmegaConf.to_container(config, resolve=True))
    for key in PATHS:
        path = OmegaConf.select(resolved, key)
        if isinstance(path, str) and path and "://" not in path:
            OmegaConf.update(resolved, key, str(Path(path).expanduser().absolute()))
    store = OmegaConf.select(resolved, "tracking.uri")
    if isinstance(store, str):
        resolved.tracking.uri = absolute_uri(store)
    write_checked_yaml(folder / CONFIG_FILE, OmegaConf.to_yaml(resolved))


def read_config(folder: Path) -> DictConfig:
    """Return the configuration of a run.

    Raises:
        DataError: If the file is missing or damaged.
    """
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise DataError(
            f"{folder} has no {CONFIG_FILE}. Restore the file or run it again."
        )
    config = read_yaml(path)
    if not isinstance(config, DictConfig):
        raise damaged(path, "it contains no settings")
    # a run writes values; an interpolation could read the environment,
    # so nothing is looked up before this check
    for text in texts_in(OmegaConf.to_container(config)):
        if "${" in text:
            raise damaged(
                path,
                f"it contains an interpolation, which a run does not write: {text}",
            )
    if not isinstance(config.get("data"), DictConfig):
        raise damaged(path, "it does not say which data the run used")
    return config


def read_yaml(path: Path) -> DictConfig | ListConfig:
    """Read a YAML file of a run folder.

    Raises:
        DataError: If the file is damaged.
    """
    try:
        return parsed_yaml(path, read_checked_yaml(path))
    except ConfigError as error:
        raise damaged(path, str(error)) from error


def read_metrics(folder: Path, is_complete: bool = False) -> dict[str, Any]:
    """Read all numbers of a run, and check the types of those that commands use.

    Args:
        folder: The folder of the run.
        is_complete: Whether the numbers that each finished run has must be there.

    Raises:
        DataError: If the file is missing or damaged.
    """
    path = folder / METRICS_FILE
    metrics = read_checked_json(path)
    check_values(path, metrics)
    if is_complete:
        check_complete(path, metrics)
    return metrics


ALIGNMENT_CHECKSUM = "alignment_sha256"
"""The key of the metrics, and of the numbers of a prediction, that has the checksum of the file."""


def alignment_checksum(folder: Path) -> dict[str, str]:
    """Return the entry with the checksum of the alignment that was written to a folder."""
    return {ALIGNMENT_CHECKSUM: sha256(read_file(folder / ALIGNMENT_FILE))}


BELIEFS_CHECKSUM, DECISIONS_CHECKSUM = "beliefs_sha256", "decisions_sha256"
"""Keys of the metrics that have the checksums of further files; null if the run has no such file.
They bind the files to the run. Runs of earlier versions have none."""


def file_checksums(folder: Path) -> dict[str, str | None]:
    """Return the entries with the checksums of the files that belong to the metrics of a run."""
    named = {BELIEFS_CHECKSUM: BELIEFS_FILE, DECISIONS_CHECKSUM: DECISIONS_FILE}
    return {
        key: sha256(read_file(folder / name)) if (folder / name).exists() else None
        for key, name in named.items()
    }


def record_checksums(folder: Path) -> None:
    """Write the checksums into the metrics of a finished run, some of whose files were replaced."""
    path = folder / METRICS_FILE
    metrics = read_checked_json(path)
    found = {**metrics, **file_checksums(folder)}
    if found != metrics:
        write_checked_json(path, found)


def check_files(folder: Path, metrics: Mapping[str, Any]) -> None:
    """Raise an error if a file of a run is not the one that the run wrote.

    Args:
        folder: The folder of the run.
        metrics: Its metrics.

    Raises:
        DataError: One has another checksum, or is missing.
    """
    for key, found in file_checksums(folder).items():
        if key in metrics and metrics[key] != found:
            name = BELIEFS_FILE if key == BELIEFS_CHECKSUM else DECISIONS_FILE
            problem = (
                "it is missing" if found is None else "it is not the file of this run"
            )
            raise damaged(folder / name, problem)


def recorded_checksum(alignment: Path) -> str | None:
    """Return the checksum of an alignment according to the record in its folder.

    Returns:
        The checksum; ``None`` if the file has another name, or no record or an earlier one.

    Raises:
        DataError: If the record is damaged.
    """
    for name in (METRICS_FILE, NUMBERS_FILE):
        record = alignment.with_name(name)
        if alignment.name == ALIGNMENT_FILE and record.is_file():
            found = read_checked_json(record).get(ALIGNMENT_CHECKSUM)
            return found if isinstance(found, str) else None
    return None


def finite(node: Any) -> Any:
    """Replace NaN and infinity by ``None``, because JSON does not have them."""
    if isinstance(node, dict):
        return {key: finite(value) for key, value in node.items()}
    if isinstance(node, list):
        return [finite(value) for value in node]
    return None if isinstance(node, float) and not math.isfinite(node) else node


def write_ranks(folder: Path, links: IntArray, ranks: "Mapping[str, Ranks]") -> None:
    """Write the ranks of the test links, with a checksum of the links.

    Args:
        folder: The run's folder.
        links: ``[num_links, 2]`` test links, in the order of the ranks.
        ranks: Ranks by name: ``initial``, ``final`` and perhaps ``embedding``.
    """
    arrays = {"links": links, LINKS_CHECKSUM: np.array(links_checksum(links))}
    for name, one in ranks.items():
        arrays |= {f"{name}_in_pool": one.in_pool, f"{name}_in_all": one.in_all}
    write_checked_arrays(folder / RANKS_FILE, **arrays)


def links_checksum(links: IntArray) -> str:
    """Return the SHA-256 of test links in their order; ranks with equal checksums can be paired."""
    return hashlib.sha256(links.astype("<i8").tobytes()).hexdigest()


def read_ranks(folder: Path) -> tuple[dict[str, np.ndarray], str | None]:
    """Return the ranks of a run and the checksum of their links, ``None`` if it is unknown.

    Raises:
        DataError: If the file is missing or damaged, or its links have another checksum.
    """
    path = folder / RANKS_FILE
    arrays = read_checked_arrays(path)
    written = arrays.pop(LINKS_CHECKSUM, None)
    links = arrays.get("links")
    checksum = None if links is None else links_checksum(links)
    if written is not None and checksum is not None and str(written) != checksum:
        raise damaged(path, "its links have another checksum")
    return arrays, checksum if written is None else str(written)


def answered_entry(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return the history entry of the iteration that a run answers with; empty without a history.

    That is the last iteration, unless ``em.keep=best`` returned to an earlier one.
    """
    history = metrics.get("history") or [{}]
    kept = metrics.get("kept_iteration")
    entry: dict[str, Any] = history[-1 if kept is None else kept]
    return entry


def sweep_objective(metrics: dict[str, Any]) -> float:
    """Return the MRR of the validation links in the ranking that a run answers with.

    It never uses test links: a search that maximised their metrics would report biased numbers.
    Reasoning methods do not rank validation links, so their objective is NaN.
    """
    entry = answered_entry(metrics)
    found = (entry.get("validation_answer") or entry.get("validation") or {}).get("mrr")
    return math.nan if found is None else float(found)


ANSWER_FILES = (*sorted(ALIGNMENT_FILES), *sorted(SCHEMA_FILES))
"""The files of an answer, in all formats."""

RUN_FILES = (
    *(
        "config.yaml",
        "metrics.json",
        "run.json",
        "series.jsonl",
        "run.log",
        ".hydra/*.yaml",
    ),
    *ANSWER_FILES,
    *(
        f"{side}_vectors.{ending}"
        for side in ("source", "target")
        for ending in ("npy", "txt")
    ),
    *("ranks.npz", "beliefs.npz", "pair.npz", "checkpoint.safetensors"),
)
"""The files that a run writes. They are selected by name, because the folder may also contain other
files of the user."""


def run_files(folder: Path, max_mb: float) -> tuple[list[Path], list[Path]]:
    """Return the files of a run, sorted: those to copy, and those that are too large.

    Args:
        folder: The run's folder; other files in it are ignored.
        max_mb: Files larger than this many megabytes are not copied.
    """
    small: list[Path] = []
    large: list[Path] = []
    inside = folder.resolve()
    for path in sorted(path for pattern in RUN_FILES for path in folder.glob(pattern)):
        # A broken link, or a pipe, has nothing to copy. Other links may lead to files of the user.
        if path.is_file() and path.resolve().is_relative_to(inside):
            fits = path.stat().st_size <= max_mb * 1e6
            (small if fits else large).append(path)
    return small, large
