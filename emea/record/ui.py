"""The MLflow UI, served on this machine only."""

import logging
import os
import socket
import sys
from typing import TYPE_CHECKING

from emea.errors import UserError
from emea.record.mlflow_store import open_client
from emea.record.mlflow_view import VIEW_KEY, save_view
from emea.record.store_uri import absolute_uri, artifact_location, shown_uri, sqlite_path

if TYPE_CHECKING:
    from mlflow import MlflowClient

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
"""The server has no login, so only this machine may reach it."""

TRAINING_VIEW = "workflowType=machine_learning"
"""Without this part of the address, the UI opens its pages for chats and prompts."""


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
