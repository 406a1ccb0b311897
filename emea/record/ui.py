"""The MLflow UI, served on this machine only."""

import http.client
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from emea.errors import UserError
from emea.record.interrupted import close_interrupted
from emea.record.mlflow_client import open_client, set_environment
from emea.record.mlflow_view import VIEW_KEY, save_view
from emea.record.store_uri import absolute_uri, artifact_location, shown_uri, sqlite_path

if TYPE_CHECKING:
    from mlflow import MlflowClient

logger = logging.getLogger(__name__)


# the server has no login, so only this machine may reach it
HOST = "127.0.0.1"

# without this part of the address, the UI opens its pages for chats and prompts
TRAINING_VIEW = "workflowType=machine_learning"

POLL_SECONDS = 0.5

REPORT_SECONDS = 15
"""Between two lines that say that the server is not ready."""

MAX_STUDIES = 5
"""Other studies that are named."""


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


def study_address(server: str, experiment_id: str) -> str:
    """Return the page of a study's runs, opened on its saved view."""
    view = f"viewStateShareKey={VIEW_KEY}"
    return f"{server}/#/experiments/{experiment_id}/runs?{TRAINING_VIEW}&{view}"


def studies(client: "MlflowClient") -> dict[str, str]:
    """Return MLflow's id of each study that has runs, by name; the latest study comes first."""
    latest: dict[str, tuple[int, str]] = {}
    for found in client.search_experiments():
        runs = client.search_runs(
            [found.experiment_id], order_by=["attributes.start_time DESC"], max_results=1
        )
        if runs:
            latest[found.name] = (runs[0].info.start_time, found.experiment_id)
    ordered = sorted(latest, key=lambda name: latest[name], reverse=True)
    return {name: latest[name][1] for name in ordered}


def results_address(client: "MlflowClient", server: str, study: str | None = None) -> str:
    """Return the address to open: the runs table of a study with its results as columns.

    Args:
        client: The MLflow client of the store.
        server: Address of the MLflow server.
        study: Name of the study; ``None`` means the one with the latest run.

    Raises:
        UserError: If there is no such study.
    """
    close_interrupted(client)
    found = studies(client)
    if study is not None and study not in found:
        known = f" It has: {', '.join(found)}." if found else " It has no runs yet."
        raise UserError(f"The store has no runs of study {study}.{known}")
    if not found:
        logger.info("The store has no runs yet.")
        return server
    name = study or next(iter(found))
    save_view(client, found[name])
    others = [other for other in found if other != name]
    logger.info("Study %s.%s", name, _other_studies(others))
    return study_address(server, found[name])


def _other_studies(names: Sequence[str]) -> str:
    if not names:
        return ""
    more = ", ..." if len(names) > MAX_STUDIES else ""
    return f" Other studies (--study NAME): {', '.join(names[:MAX_STUDIES])}{more}"


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
    # otherwise the server's processes would create the tables concurrently
    client = open_client(uri)
    set_environment()
    # the job runner starts a dozen processes that runs and charts do not need
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    address = results_address(client, f"http://{HOST}:{port}", study)
    logger.info("Waiting for the MLflow server to start (about half a minute). Ctrl-C stops it.")
    sys.stdout.flush()
    # this process becomes the server, so another one waits until it answers
    subprocess.Popen([sys.executable, "-m", __name__, str(port), str(os.getpid()), address])
    command = server_command(uri, artifact_root, port)
    # exec, so that a signal to this process ends the server
    os.execv(command[0], command)


def print_when_ready(port: int, server: int, address: str) -> None:
    """Print the address once the server answers.

    Args:
        port: The port of the server.
        server: The process id of the server; if the process ends, waiting ends.
        address: The address to open.
    """
    started = reported = time.monotonic()
    while os.getppid() == server:
        connection = http.client.HTTPConnection(HOST, port, timeout=10)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == http.client.OK:
                print(f"Open {address}", flush=True)
                return
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        if time.monotonic() - reported > REPORT_SECONDS:
            reported = time.monotonic()
            print(f"Still waiting for the server ({reported - started:.0f} s)", flush=True)
        time.sleep(POLL_SECONDS)


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        # as in the server: a port that only waits for old connections to close counts as free
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UserError(f"Port {port} is in use. Choose another: emea ui --port N") from error


if __name__ == "__main__":
    try:
        print_when_ready(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    except KeyboardInterrupt:
        sys.exit(130)
