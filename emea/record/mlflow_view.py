"""The saved view of a study in the MLflow UI: its columns and charts."""

import json
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from emea.record.run_name import swept_values

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

VIEW_KEY = "emea"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW_KEY}"
"""The tag of an experiment in which MLflow keeps a shared view, by its key."""

KIND_TAG, KIND = "mlflow.experimentKind", "custom_model_development"
"""The tag by which MLflow knows that a study trains models."""

SWEEP_PARENT_TAG = "emea.sweep"
"""The tag of the parent run of a sweep."""

METRICS = ("run/initial/hit_at_1", "run/final/hit_at_1", "run/final/mrr")
PARAMS = ("data.name", "ratio.value", "model.name", "em.name", "rule.name")

BEST_FIRST = {"orderByKey": "metrics.`run/final/hit_at_1`", "orderByAsc": False}
"""Sorted by a metric, MLflow lists the jobs of a sweep as rows instead of folding them away."""

CHARTS = {
    "Hit@1: encoder and joint": ("neural/hit_at_1", "joint/hit_at_1"),
    "MRR: encoder and joint": ("neural/mrr", "joint/mrr"),
}
"""Line charts with more than one metric, by title."""

MAX_SWEPT = 12
"""At most so many columns of swept settings: a study of many sweeps varies almost everything."""

PAGE = 1000


def save_view(client: "MlflowClient", experiment_id: str) -> None:
    """Store the columns and charts of a study as a shared view of its experiment.

    Args:
        client: The MLflow client of the store.
        experiment_id: MLflow's id of the study.
    """
    runs = client.search_runs([experiment_id], max_results=PAGE)
    now = int(time.time() * 1000)
    view = {
        "name": "Results",
        "createdAt": now,
        "updatedAt": now,
        "state": json.dumps(view_state(runs)),
    }
    client.set_experiment_tag(experiment_id, VIEW_TAG, json.dumps(view))
    client.set_experiment_tag(experiment_id, KIND_TAG, KIND)


def view_state(runs: "Sequence[Run]") -> dict[str, Any]:
    """Return the state of the runs page: columns, charts, and the order of the rows."""
    jobs = [run for run in runs if SWEEP_PARENT_TAG not in run.data.tags]
    return {
        "selectedColumns": columns(jobs),
        "compareRunCharts": [
            _chart(number, title, keys) for number, (title, keys) in enumerate(CHARTS.items())
        ],
        "compareRunSections": [
            {"uuid": "emea", "name": "Results", "display": True, "isReordered": False}
        ],
        **BEST_FIRST,
    }


def columns(runs: "Iterable[Run]") -> list[str]:
    """Return the columns of the table: results, usual settings and every setting that differs."""
    found = swept_values([run.data.params for run in runs])
    swept = list(dict.fromkeys(key for one in found for key in one))
    others = [key for key in swept if key not in PARAMS][:MAX_SWEPT]
    return [
        *(f"metrics.`{name}`" for name in METRICS),
        *(f"params.`{name}`" for name in (*PARAMS, *others)),
    ]


def _chart(number: int, title: str, keys: Sequence[str]) -> dict[str, Any]:
    """Return a line chart over iterations, in the form in which MLflow's UI stores it."""
    return {
        "uuid": f"emea-{number}",
        "type": "LINE",
        "isGenerated": False,
        "deleted": False,
        "metricSectionId": "emea",
        "displayName": title,
        "metricKey": keys[0],
        "selectedMetricKeys": list(keys),
        "lineSmoothness": 0,
        "xAxisKey": "step",
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "scaleType": "linear",
        "xAxisScaleType": "linear",
        "selectedXAxisMetricKey": "",
        "range": {},
        "useGlobalXaxisKey": True,
        "useGlobalLineSmoothing": True,
    }
