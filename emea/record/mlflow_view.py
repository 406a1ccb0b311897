"""What the MLflow UI shows of a study: the parameters of its runs and the columns."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from emea.config.settings.groups import OPTIONAL
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

BEST_FIRST = {"orderByKey": "metrics.`run/final/hit_at_1`", "orderByAsc": False}
METRICS = ("run/initial/hit_at_1", "run/final/hit_at_1", "run/final/mrr")
PARAMS = ("data.name", "ratio.value", "model.name", "em.name", "rule.name", "protocol.name")

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
    """Store the columns of a study and the order of its runs as a shared view."""
    now = int(time.time() * 1000)
    state = {"selectedColumns": columns(client.search_runs([experiment_id])), **BEST_FIRST}
    view = {"name": "Results", "createdAt": now, "updatedAt": now, "state": json.dumps(state)}
    client.set_experiment_tag(experiment_id, VIEW_TAG, json.dumps(view))
    client.set_experiment_tag(experiment_id, KIND_TAG, KIND)


def columns(runs: "Iterable[Run]") -> list[str]:
    """Return the columns of the table: results, usual settings and every setting that differs."""
    swept = swept_keys([run.data.params for run in runs])
    others = [key for key in swept if key not in PARAMS][:MAX_SWEPT]
    return [
        *(f"metrics.`{name}`" for name in METRICS),
        *(f"params.`{name}`" for name in (*PARAMS, *others)),
    ]


def swept_keys(runs: Sequence[Mapping[str, ParamValue]]) -> list[str]:
    """Return the settings that differ between runs that chose the same option of their group.

    A setting that only follows from the option of its group, such as a learning rate that differs
    because the model does, is left out.
    """
    values: dict[str, dict[object, set[str]]] = {key: {} for key in chain.from_iterable(runs)}
    for run in runs:
        for key, value in run.items():
            group = f"{key.partition('.')[0]}.name"
            option = None if key == group else run.get(group)
            values[key].setdefault(option, set()).add(str(value))
    return [key for key, by in values.items() if any(len(found) > 1 for found in by.values())]
