"""Converts finished run folders to runs of a study, and back."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from emea.errors import DataError
from emea.record.checked_files import (
    write_atomic,
    write_checked_arrays,
    write_checked_json,
    write_checked_yaml,
)
from emea.record.run_folder import (
    CONFIG_FILE,
    LINKS_CHECKSUM,
    METRICS_FILE,
    RANKS_FILE,
    read_config,
    read_metrics,
    read_ranks,
)
from emea.record.run_record import (
    COMMAND_TAG,
    RUN_FILE,
    SERIES_FILE,
    USER_TAG,
    check_finished,
    flat_params,
    read_run_file,
)
from experiments.archive.study import HEADER, StudyRun, is_study, read_study
from experiments.archive.study_files import HISTORY, SERIES, PackedRun, encoded_ranks

RANKS_KEPT = ("initial_in_pool", "final_in_pool")
"""The ranks of a run that a study keeps: those among the test targets."""

UNTITLED = re.compile(r"[\d_.-]+")
"""Names that Hydra gives to run folders: times and numbers."""

NAME = re.compile(r"[^\W_][^/\\\x00-\x1f]*")
"""Names of runs: safe as a folder in any file system."""


def packed_runs(folder: Path, name: str | None = None) -> dict[str, PackedRun]:
    """Return the runs in a folder, ready to be added to a study.

    Args:
        folder: The folder of a finished run, or of a study, whose runs are all returned.
        name: The name of the run. ``None`` means the name of its folder, or the one in its header
            if the name of the folder is only a time or a number.

    Raises:
        DataError: If the run is unfinished, or a file is missing or damaged.
    """
    if is_study(folder):
        if name is not None:
            raise DataError(
                f"{folder} is a study: its runs keep their names, so omit --name."
            )
        return {run.name: _packed_again(run) for run in read_study(folder)}
    check_finished(folder)
    packed = pack_run(folder)
    title = folder.resolve().name
    name = name or (packed.entry["name"] if UNTITLED.fullmatch(title) else title)
    name = name if "/" not in str(name) else name.replace("/", "_")
    return {
        name: PackedRun({"run": checked_name(name), **packed.entry}, packed.details)
    }


def checked_name(name: str) -> str:
    """Return the name of a run, if it can also be the name of a folder.

    Raises:
        DataError: If the name cannot be the name of a folder.
    """
    if not NAME.fullmatch(name) or len(name) > 200:
        raise DataError(
            f"{name!r} cannot be the name of a run: it must start with a letter or a digit, have "
            "no slash and at most 200 characters. Choose another with --name."
        )
    return name


def pack_run(folder: Path) -> PackedRun:
    """Return what a study stores about a finished run, except for the run's name in the study.

    The result does not contain the user, the command, or the folders of data and checkpoints on the
    machine of the run.

    Raises:
        DataError: If a file is missing or damaged.
    """
    settings: Any = OmegaConf.to_container(read_config(folder))
    header = read_run_file(folder)
    metrics = read_metrics(folder)
    config = without_places(settings)
    params = without_places(header["params"])
    entry: dict[str, Any] = {key: header[key] for key in HEADER if key != "params"}
    tags = {key: tag for key, tag in header["tags"].items() if key != COMMAND_TAG}
    entry["tags"] = tags | ({USER_TAG: ""} if USER_TAG in tags else {})
    entry["config"] = config
    if params != flat_params(config):
        entry["params"] = params
    history = metrics.get("history", [])
    entry["metrics"] = {
        key: None if key == "history" else metrics[key] for key in metrics
    }
    details = {
        HISTORY: "".join(_line(item) for item in history).encode(),
        SERIES: _series(folder),
    }
    ranks, entry["links"] = _ranks(folder)
    return PackedRun(entry, details | ranks)


def without_places(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without the folders of a machine.

    Args:
        settings: Nested settings, or flat settings with dotted keys.
    """
    kept = dict(settings)
    if isinstance(kept.get("data"), dict) and "root" in kept["data"]:
        kept["data"] = {**kept["data"], "root": "data"}
    if "data.root" in kept:
        kept["data.root"] = "data"
    if kept.get("initial_from"):
        kept["initial_from"] = "/".join(Path(str(kept["initial_from"])).parts[-2:])
    return kept


def restore_run(run: StudyRun, folder: Path) -> None:
    """Write the files of a recorded run into a new or empty folder.

    Raises:
        DataError: If the folder has content, or the study is damaged.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} is not empty. Choose a new folder with --out.")
    metrics, series = run.metrics, run.detail(SERIES)
    ranks = {
        f"{stage}_in_pool": found.astype(np.float32)
        for stage in ("initial", "final")
        if (found := run.ranks(stage)) is not None
    }
    checksum = run.links_checksum
    others = {} if checksum is None else {LINKS_CHECKSUM: np.array(checksum)}
    write_checked_yaml(
        folder / CONFIG_FILE, OmegaConf.to_yaml(OmegaConf.create(run.config))
    )
    write_checked_json(folder / METRICS_FILE, metrics)
    write_atomic(folder / SERIES_FILE, series)
    if ranks:
        write_checked_arrays(folder / RANKS_FILE, **ranks, **others)
    # written last, because it marks the folder as a run
    write_checked_json(folder / RUN_FILE, run.header)


def _packed_again(run: StudyRun) -> PackedRun:
    entry = {
        key: value
        for key, value in run.entry.items()
        if key not in ("details", "digest")
    }
    return PackedRun(entry, {name: run.detail(name) for name in run.entry["details"]})


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def _series(folder: Path) -> bytes:
    path = folder / SERIES_FILE
    return path.read_bytes() if path.exists() else b""


def _ranks(folder: Path) -> tuple[dict[str, bytes], str | None]:
    """Return the encoded ranks by the names of their details, and the checksum of their links."""
    path = folder / RANKS_FILE
    if not path.exists():
        return {}, None
    arrays, checksum = read_ranks(folder)
    try:
        kept = {
            f"{name}.npy": encoded_ranks(arrays[name])
            for name in RANKS_KEPT
            if name in arrays
        }
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}.") from error
    return kept, checksum
