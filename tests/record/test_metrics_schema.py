"""The numbers of a run are checked when a command reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

from emea.errors import DataError
from emea.record.metrics_schema import METRICS, NEEDED
from emea.record.run_folder import METRICS_FILE, read_metrics

ENTRY = {"iteration": 0, "weights": {"a": 0.5}, "validation": {"mrr": None}}
COMPLETE: dict[str, Any] = {
    "history": [ENTRY],
    "protocol": "strict",
    "method": "emea",
    "model": "rrea",
    "em": "dual",
    "decoding": "one_to_one",
    "data": "zh",
    "num_links": {"train": 3, "validation": 1, "test": 0, "crossed": True},
    "export": {"threshold": None, "num_answered": 4, "num_unmatched": 0},
    "seconds": {"total": 3.5},
    "counterparts": {
        side: {"value": 0.5, "low": 0.25, "high": 1.0} for side in ("source", "target")
    },
    "peak_memory_mb": 358.9,
    "warnings": ["a warning"],
}


def read(folder: Path, changes: dict[str, Any]) -> dict[str, Any]:
    (folder / METRICS_FILE).write_text(json.dumps({**COMPLETE, **changes}))
    return read_metrics(folder, is_complete=True)


def test_usual_metrics_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, {}) == COMPLETE
    assert read(tmp_path, {"counterparts": None, "export": EXPORT})["export"] == EXPORT


EXPORT = {"threshold": 0.75, "num_answered": 4, "num_unmatched": 0}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"export": None}, "its export is not an object"),
        ({"export": []}, "its export is not an object"),
        ({"export": {**EXPORT, "threshold": "x"}}, "its export.threshold is not"),
        ({"export": {**EXPORT, "threshold": 5}}, "not a number from 0 to 1"),
        ({"export": {**EXPORT, "threshold": float("nan")}}, "not a number from 0 to 1"),
        ({"export": {"threshold": 0.5}}, "it lacks the num_answered of export"),
        ({"counterparts": {"source": 3}}, "its counterparts.source is not an object"),
        ({"counterparts": {}}, "its counterparts lacks the source"),
        ({"counterparts": {"source": {}}}, "its counterparts.source lacks the value"),
        ({"num_links": {}}, "it lacks the train of num_links"),
        ({"num_links": {"train": 1, "validation": "x", "test": 1}}, "num_links.valid"),
        ({"seconds": None}, "its seconds is not an object"),
        ({"seconds": {"total": True}}, "its seconds.total is not a number"),
        ({"seconds": {"total": 10**400}}, "its seconds.total is not a number"),
        ({"history": [{"weights": [1]}]}, r"its history\[0\].weights is not an object"),
        ({"history": [{"weights": {"a": "x"}}]}, "weights.a is not a number"),
        ({"history": []}, "it lacks the history"),
        ({"history": [3]}, r"its history\[0\] is not an object"),
        ({"kept_iteration": 3}, "it answers with iteration 3, which its history lacks"),
        ({"kept_iteration": -1}, "its kept_iteration is not"),
        ({"peak_memory_mb": "x"}, "its peak_memory_mb is not"),
        ({"warnings": [3]}, r"its warnings\[0\] is not text"),
        ({"method": 3}, "its method is not text"),
    ],
)
def test_a_wrong_value_is_refused(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(DataError, match=rf"metrics\.json is damaged: .*{problem}"):
        read(tmp_path, changes)


def test_what_is_needed_has_a_type() -> None:
    assert METRICS.inner is not None
    for section, keys in NEEDED.items():
        inner = METRICS.inner[section].inner if section else METRICS.inner
        for key in keys:
            assert section == "seconds" or key in (inner or {})
