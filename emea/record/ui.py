"""The MLflow UI, served on this machine only, with the results of a study as columns."""

import json
import logging
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from emea.errors import UserError
from emea.evaluation.metric_table import RANKING_METRICS, TRACKED
from emea.record.interrupted import close_dead_runs
from emea.record.mlflow_store import open_client
from emea.record.run_record import ParamValue
from emea.record.store_uri import (
    absolute_uri,
    artifact_location,
    shown_uri,
    sqlite_path,
)
from emea.runtime.signals import signals_as_interrupt

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
"""The server has no login, so only this machine may reach it."""

TRAINING_VIEW = "workflowType=machine_learning"
"""Without this part of the address, the UI opens its pages for chats and prompts."""

VIEW_KEY = "emea"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW_KEY}"
"""The tag of an experiment in which MLflow keeps a shared view, by its key."""

KIND_TAG, KIND = "mlflow.experimentKind", "custom_model_development"
"""The tag by which MLflow knows that a study trains models."""

BEST_FIRST = {"orderByKey": "metrics.`final/hit_at_1`", "orderByAsc": False}
METRICS = tuple(column.in_mlflow for column in TRACKED)
PARAMS = (
    "protocol.name",
    "data.name",
    "ratio.value",
    "model.name",
    "em.name",
    "rule.name",
)

RUN_NAME, NAME_WIDTH = "attributes.`Run Name`", 230
"""The first column of the table and its width in pixels."""

PIXELS_PER_CHARACTER, PADDING = 8, 26
"""The width of a column follows from its name."""

CHARTS = tuple(
    (f"neural/{metric.attribute}", f"joint/{metric.attribute}")
    for metric in RANKING_METRICS
    if metric.in_charts
)
"""Line charts over the iterations, each with two metrics, from which MLflow makes the title."""

CHART_SECTION = {
    "uuid": "emea",
    "name": "Encoder (neural) and joint distribution",
    "display": True,
    "isReordered": False,
}

POLL_SECONDS = 0.2
"""How often the server is asked whether it answers."""

MAX_SWEPT = 12
"""At most so many columns of swept settings: a study of many sweeps varies almost everything."""


def server_command(uri: str, artifact_root: str, port: int) -> list[str]:
    """Return the command that serves the store on the loopback address with a single worker."""
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--host",
        HOST,
        "--port",
        str(port),
    ]
    # The server would print an address that opens the pages for chats and prompts. Without
    # lifespan, which only cleans up after such chats, Ctrl-C does not print a traceback.
    command += ["--uvicorn-opts", "--log-level warning --lifespan off"]
    command += ["--workers", "1", "--backend-store-uri", uri]
    location = artifact_location(uri, artifact_root)
    # the experiments define where files are; a proxy folder of the server would stay empty
    return [
        *command,
        "--no-serve-artifacts",
        "--default-artifact-root",
        location or "mlruns",
    ]


def results_address(
    client: "MlflowClient", server: str, study: str | None = None
) -> str:
    """Return the address to open: the runs table of a study with its results as columns.

    Args:
        client: The MLflow client of the store.
        server: Address of the MLflow server.
        study: Name of the study; ``None`` means the one with the latest run.

    Raises:
        UserError: If there is no such study.
    """
    names = {found.experiment_id: found.name for found in client.search_experiments()}
    wanted = [key for key, name in names.items() if study in (None, name)]
    latest = client.search_runs(
        wanted, order_by=["attributes.start_time DESC"], max_results=1
    )
    if not latest and study is not None:
        known = ", ".join(names.values())
        raise UserError(
            f"The store has no runs of study {study}. Its studies: {known}."
        )
    if not latest:
        logger.info("The store has no runs yet.")
        return server
    experiment = latest[0].info.experiment_id
    save_view(client, experiment)
    logger.info("Study %s. --study NAME opens another one.", names[experiment])
    view = f"{TRAINING_VIEW}&viewStateShareKey={VIEW_KEY}"
    return f"{server}/#/experiments/{experiment}/runs?{view}"


def save_view(client: "MlflowClient", experiment_id: str) -> None:
    """Store the columns of a study, their order and widths, and the order of its runs as a view."""
    now = int(time.time() * 1000)
    shown = columns(client.search_runs([experiment_id]))
    state = {
        "selectedColumns": shown,
        # without these, the page cuts the names of settings
        "columnOrder": [RUN_NAME, *shown],
        "columnWidths": {RUN_NAME: NAME_WIDTH} | {one: _width(one) for one in shown},
        "compareRunCharts": [
            _chart(number, names) for number, names in enumerate(CHARTS)
        ],
        "compareRunSections": [CHART_SECTION],
        # otherwise the page sorts the sections by name, and this one is far down
        "isAccordionReordered": True,
        **BEST_FIRST,
    }
    view = {
        "name": "Results",
        "createdAt": now,
        "updatedAt": now,
        "state": json.dumps(state),
    }
    client.set_experiment_tag(experiment_id, VIEW_TAG, json.dumps(view))
    client.set_experiment_tag(experiment_id, KIND_TAG, KIND)


def _width(column: str) -> int:
    """Return the width of a column in pixels, which shows its whole name."""
    name = column.split("`")[1]
    return PIXELS_PER_CHARACTER * len(name) + PADDING


def _chart(number: int, names: Sequence[str]) -> dict[str, Any]:
    """Return a line chart over the iterations, in the form in which MLflow's UI stores it."""
    return {
        "uuid": f"{CHART_SECTION['uuid']}-{number}",
        "type": "LINE",
        "isGenerated": False,
        "deleted": False,
        "metricSectionId": CHART_SECTION["uuid"],
        "metricKey": names[0],
        "selectedMetricKeys": list(names),
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


def columns(runs: "Iterable[Run]") -> list[str]:
    """Return the columns of the table: results, every setting that differs and usual settings.

    The results come first, so that a window shows them however many settings differ. The name of a
    run starts with these settings.
    """
    swept = swept_keys([run.data.params for run in runs])[:MAX_SWEPT]
    usual = [key for key in PARAMS if key not in swept]
    return [
        *(f"metrics.`{name}`" for name in METRICS),
        *(f"params.`{name}`" for name in swept),
        *(f"params.`{name}`" for name in usual),
    ]


def swept_keys(runs: Sequence[Mapping[str, ParamValue]]) -> list[str]:
    """Return the settings that differ between runs that chose the same option of their group.

    A setting that only follows from the option of its group, such as a learning rate that differs
    because the model does, is left out.
    """
    values: dict[str, dict[object, set[str]]] = {
        key: {} for key in chain.from_iterable(runs)
    }
    for run in runs:
        for key, value in run.items():
            group = f"{key.partition('.')[0]}.name"
            option = None if key == group else run.get(group)
            values[key].setdefault(option, set()).add(str(value))
    return [
        key
        for key, by in values.items()
        if any(len(found) > 1 for found in by.values())
    ]


def serve_ui(uri: str, artifact_root: str, port: int, study: str | None = None) -> None:
    """Run the MLflow server until it is interrupted, and print its address when it answers.

    If the store is a server already, only its address is printed. Runs of this machine whose
    process is gone are marked first.

    Raises:
        UserError: If the port is in use, the store or study does not exist, or the server fails.
    """
    if uri.startswith("http"):
        client = open_client(uri)
        close_dead_runs(client)
        logger.info("Open %s", results_address(client, uri.rstrip("/"), study))
        return
    _check_port(port)
    uri = absolute_uri(uri)
    file = sqlite_path(uri)
    if file is not None and not file.is_file():
        raise UserError(
            f"The store {shown_uri(uri)} does not exist. Start emea ui in the folder of your runs, "
            "or name the store with --uri. If there is no store yet, emea run creates it, and emea "
            "sync DIR imports run folders."
        )
    logger.info("Opening the store %s", shown_uri(uri))
    # opened here, because the server's processes would create the tables concurrently
    client = open_client(uri)
    close_dead_runs(client)
    server = f"http://{HOST}:{port}"
    address = results_address(client, server, study)
    # the job runner starts a dozen processes that runs and charts do not need
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    logger.info(
        "Starting the MLflow server takes about half a minute. Ctrl-C stops it."
    )
    run_server(server_command(uri, artifact_root, port), f"{server}/health", address)


def run_server(command: Sequence[str], health: str, address: str) -> None:
    """Start a server, print an address when it answers, and wait until it ends.

    Args:
        command: The command that starts the server.
        health: The address that answers as soon as the server is ready.
        address: The address to open.

    Raises:
        UserError: If the server ends by itself.
    """
    with signals_as_interrupt(), subprocess.Popen(command) as process:
        try:
            while process.poll() is None and not _answers(health):
                time.sleep(POLL_SECONDS)
            if process.poll() is None:
                logger.info("Open %s", address)
                sys.stdout.flush()
            status = process.wait()
        finally:
            process.terminate()
    raise UserError(
        f"The MLflow server ended with exit status {status}. Its output is above."
    )


def _answers(address: str) -> bool:
    """Return whether a server answers at an address."""
    # the server is on this machine, so a proxy of the environment must not be asked
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address, timeout=5):
            return True
    except OSError:
        return False


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        # as in the server: a port that only waits for old connections to close counts as free
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UserError(
                f"Port {port} is in use. Choose another: emea ui --port N"
            ) from error
