"""The MLflow UI, served on this machine only, with the results of a study as columns."""

import json
import logging
import os
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from emea.errors import UserError
from emea.record.mlflow_store import open_client
from emea.record.run_record import ParamValue
from emea.record.store_uri import absolute_uri, artifact_location, shown_uri, sqlite_path

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
METRICS = ("initial/hit_at_1", "final/hit_at_1", "final/mrr")
PARAMS = ("protocol.name", "data.name", "ratio.value", "model.name", "em.name", "rule.name")

RUN_NAME, NAME_WIDTH = "attributes.`Run Name`", 230
"""The first column of the table and its width in pixels."""

MAX_SWEPT = 12
"""At most so many columns of swept settings: a study of many sweeps varies almost everything."""


def server_command(uri: str, artifact_root: str, port: int) -> list[str]:
    """Return the command that serves the store on the loopback address with a single worker."""
    command = [sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port)]
    # The server would print an address that opens the pages for chats and prompts. Without
    # lifespan, which only cleans up after such chats, Ctrl-C does not print a traceback.
    command += ["--uvicorn-opts", "--log-level warning --lifespan off"]
    command += ["--workers", "1", "--backend-store-uri", uri]
    location = artifact_location(uri, artifact_root)
    # the experiments define where files are; a proxy folder of the server would stay empty
    return [*command, "--no-serve-artifacts", "--default-artifact-root", location or "mlruns"]


def results_address(client: "MlflowClient", server: str, study: str | None = None) -> str:
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
    latest = client.search_runs(wanted, order_by=["attributes.start_time DESC"], max_results=1)
    if not latest and study is not None:
        known = ", ".join(names.values())
        raise UserError(f"The store has no runs of study {study}. Its studies: {known}.")
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
        # without these, the page puts all metrics before the settings and cuts their names
        "columnOrder": [RUN_NAME, *shown],
        # 8 pixels for each character of a name
        "columnWidths": {RUN_NAME: NAME_WIDTH}
        | {one: 8 * len(one.split("`")[1]) + 26 for one in shown},
        **BEST_FIRST,
    }
    view = {"name": "Results", "createdAt": now, "updatedAt": now, "state": json.dumps(state)}
    client.set_experiment_tag(experiment_id, VIEW_TAG, json.dumps(view))
    client.set_experiment_tag(experiment_id, KIND_TAG, KIND)


def columns(runs: "Iterable[Run]") -> list[str]:
    """Return the columns of the table: every setting that differs, results and usual settings."""
    swept = swept_keys([run.data.params for run in runs])[:MAX_SWEPT]
    usual = [key for key in PARAMS if key not in swept]
    return [
        *(f"params.`{name}`" for name in swept),
        *(f"metrics.`{name}`" for name in METRICS),
        *(f"params.`{name}`" for name in usual),
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


def serve_ui(uri: str, artifact_root: str, port: int, study: str | None = None) -> None:
    """Replace this process by the MLflow server, which runs until it is interrupted.

    If the store is a server already, only its address is printed.

    Raises:
        UserError: If the port is in use, or the store or study does not exist.
    """
    if uri.startswith("http"):
        logger.info("Open %s", results_address(open_client(uri), uri.rstrip("/"), study))
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
    address = results_address(open_client(uri), f"http://{HOST}:{port}", study)
    # the job runner starts a dozen processes that runs and charts do not need
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    logger.info("Starting the MLflow server takes about half a minute. Ctrl-C stops it.")
    logger.info("Open %s", address)
    sys.stdout.flush()
    command = server_command(uri, artifact_root, port)
    # exec, so that a signal to this process ends the server
    os.execv(command[0], command)


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        # as in the server: a port that only waits for old connections to close counts as free
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UserError(f"Port {port} is in use. Choose another: emea ui --port N") from error
