"""What the MLflow UI shows of a study: the parameters of its runs, columns and charts."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from emea.config.settings.groups import OPTIONAL
from emea.record.run_name import swept_values
from emea.record.run_record import ParamValue

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

HIDDEN = (
    "data.download",
    "data.root",
    "export.formats",
    "export.top_k",
    "hydra",
    "initial_from",
    "method.label",
    "method.uses",
    "skip_recorded",
    "split.ratio",
    "split.seed",
    "study",
    "tracking",
    "trainer",
    "trust",
)
"""Places on a machine, repetitions of other keys, and how a run is carried out and recorded."""

VIEW_KEY = "emea"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW_KEY}"
"""The tag of an experiment in which MLflow keeps a shared view, by its key."""

KIND_TAG, KIND = "mlflow.experimentKind", "custom_model_development"
"""The tag by which MLflow knows that a study trains models."""

SWEEP_PARENT_TAG = "emea.sweep"
"""The tag of the parent run of a sweep."""

METRICS = ("run/initial/hit_at_1", "run/final/hit_at_1", "run/final/mrr")
PARAMS = ("data.name", "ratio.value", "model.name", "em.name", "rule.name", "protocol.name")

BEST_FIRST = {"orderByKey": "metrics.`run/final/hit_at_1`", "orderByAsc": False}
"""Sorted by a metric, MLflow lists the jobs of a sweep as rows instead of folding them away."""

SECTION = "Encoder (neural) and joint distribution"
CHARTS = (("neural/hit_at_1", "joint/hit_at_1"), ("neural/mrr", "joint/mrr"))
"""Line charts of the section, each with two metrics. MLflow makes their titles from the metrics."""

MAX_SWEPT = 12
"""At most so many columns of swept settings: a study of many sweeps varies almost everything."""


def compared_params(params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """Return the parameters that can make the numbers of one run differ from those of another.

    Args:
        params: All parameters, as in ``run.json``; ``method.uses`` is a list as text.
    """
    uses = params.get("method.uses")
    unused = [] if uses is None else [group for group in OPTIONAL if f"'{group}'" not in str(uses)]
    hidden = (*HIDDEN, *unused)
    return {key: value for key, value in params.items() if not _is_hidden(key, hidden)}


def _is_hidden(key: str, hidden: Sequence[str]) -> bool:
    # _target_ and _partial_ are for Hydra; the name of the option contains the same information
    is_machinery = key.rpartition(".")[2].startswith("_")
    return is_machinery or any(key == name or key.startswith(f"{name}.") for name in hidden)


def save_view(client: "MlflowClient", experiment_id: str) -> None:
    """Store the columns and charts of a study as a shared view of its experiment."""
    runs = client.search_runs([experiment_id])
    now = int(time.time() * 1000)
    state = json.dumps(view_state(runs))
    view = {"name": "Results", "createdAt": now, "updatedAt": now, "state": state}
    client.set_experiment_tag(experiment_id, VIEW_TAG, json.dumps(view))
    client.set_experiment_tag(experiment_id, KIND_TAG, KIND)


def view_state(runs: "Sequence[Run]") -> dict[str, Any]:
    """Return the state of the runs page: columns, charts, and the order of the rows."""
    jobs = [run for run in runs if SWEEP_PARENT_TAG not in run.data.tags]
    return {
        "selectedColumns": columns(jobs),
        "compareRunCharts": [_chart(number, keys) for number, keys in enumerate(CHARTS)],
        "compareRunSections": [
            {"uuid": "emea", "name": SECTION, "display": True, "isReordered": False}
        ],
        # otherwise MLflow sorts the sections by name, and this one is far down the page
        "isAccordionReordered": True,
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


def _chart(number: int, keys: Sequence[str]) -> dict[str, Any]:
    """Return a line chart over iterations, in the form in which MLflow's UI stores it."""
    return {
        "uuid": f"emea-{number}",
        "type": "LINE",
        "isGenerated": False,
        "deleted": False,
        "metricSectionId": "emea",
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
