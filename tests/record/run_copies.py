"""Checks that a store contains the same runs as the run folders."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from emea.record.mlflow_store import (
    MlflowStore,
    compared_params,
    metric_name,
    stored_name,
)
from emea.record.mlflow_sweep import SWEEP_PARENT_TAG
from emea.record.run_folder import run_files
from emea.record.run_record import read_closing, read_header, read_series

STILL_WRITTEN = "run.log"
"""Gets lines after its copy was made."""


def assert_holds_only(store: MlflowStore, study: str, folders: Iterable[Path]) -> None:
    """Check that the runs of the study are those of the folders, each once and whole."""
    folders = list(folders)
    found = store.client.search_runs([store.experiment_id(study)])
    # the parent of a sweep has no folder of a run
    runs = [run for run in found if SWEEP_PARENT_TAG not in run.data.tags]
    there = [run.data.tags["emea.run_id"] for run in runs]
    assert sorted(there) == sorted(read_header(folder).run_id for folder in folders)
    for folder in folders:
        assert_is_copy(store, folder)


def assert_is_copy(store: MlflowStore, folder: Path) -> None:
    """Check that the store contains exactly one run, with the same content as the folder."""
    header, closing = read_header(folder), read_closing(folder)
    [run] = store.find_runs(header)
    assert closing is not None
    assert (run.info.run_name, run.info.status) == (header.name, closing.status)
    assert (run.info.start_time, run.info.end_time) == (
        header.start_time,
        closing.end_time,
    )
    assert run.data.tags["emea.complete"] == "true"
    shown = compared_params(header.params).items()
    assert run.data.params == {metric_name(key): str(value) for key, value in shown}
    assert _points_there(store, run) == _points_of(folder)
    _assert_same_files(store, run, folder)


def _points_of(folder: Path) -> list[tuple[str, ...]]:
    # as text, because NaN differs from itself
    return sorted(
        (stored_name(name), str(point.step), str(point.time), str(value))
        for point in read_series(folder)
        for name, value in point.metrics.items()
    )


def _points_there(store: MlflowStore, run: Any) -> list[tuple[str, ...]]:
    return sorted(
        (name, str(point.step), str(point.timestamp), str(point.value))
        for name in run.data.metrics
        for point in store.client.get_metric_history(run.info.run_id, name)
    )


def _assert_same_files(store: MlflowStore, run: Any, folder: Path) -> None:
    copied = Path(store.client.download_artifacts(run.info.run_id, ""))
    original = {path.relative_to(folder) for path in run_files(folder, max_mb=200)[0]}
    assert {
        path.relative_to(copied) for path in copied.rglob("*") if path.is_file()
    } == original
    for name in original:
        content = (copied / name).read_bytes()
        whole = (folder / name).read_bytes()
        assert (
            whole.startswith(content)
            if name.name == STILL_WRITTEN
            else whole == content
        )
