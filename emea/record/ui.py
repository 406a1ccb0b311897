"""The MLflow UI, served on this machine only."""

import http.client
import logging
import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from emea.errors import UserError
from emea.record.mlflow_client import open_client, set_environment
from emea.record.store_uri import absolute_uri, artifact_location, shown_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient

logger = logging.getLogger(__name__)


# The server has no login, so it is for this machine's own loopback and nothing else.
HOST = "127.0.0.1"

# Part of the addresses of runs: without it the UI opens on its pages for chats and prompts.
TRAINING_VIEW = "workflowType=machine_learning"

POLL_SECONDS = 0.5


def server_command(uri: str, artifact_root: str, port: int) -> list[str]:
    """The command that serves the store on the loopback address with a single worker."""
    command = [sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", uri]
    location = artifact_location(uri, artifact_root)
    # Files lie where the experiments say; a proxy folder of the server's own would stay empty.
    return [*command, "--no-serve-artifacts", "--default-artifact-root", location or "mlruns"]


def study_addresses(client: "MlflowClient", port: int) -> dict[str, str]:
    """Where the UI shows the runs of each study that has some, the latest first."""
    return {
        found.name: f"http://{HOST}:{port}/#/experiments/{found.experiment_id}/runs?{TRAINING_VIEW}"
        for found in client.search_experiments(order_by=["last_update_time DESC"])
        if client.search_runs([found.experiment_id], max_results=1)
    }


def serve_ui(uri: str, artifact_root: str, port: int) -> None:
    """Become the MLflow server, until interrupted.

    Raises:
        UserError: If the port is taken or the address is not a database.
    """
    if uri.startswith("http"):
        raise UserError(f"{shown_uri(uri)} is a server already: open it in a browser.")
    _check_port(port)
    uri = absolute_uri(uri)
    # The server's own processes would race to create the tables.
    client = open_client(uri)
    set_environment()
    # The job runner starts a dozen processes that runs and charts do not need.
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    addresses = study_addresses(client, port)
    for study, address in addresses.items():
        logger.info("Runs of study=%s: %s", study, address)
    if not addresses:
        logger.info("The store has no runs yet.")
    logger.info(
        "Starting the MLflow UI of %s. This takes about half a minute; Ctrl-C ends it.",
        shown_uri(uri),
    )
    sys.stdout.flush()
    address = next(iter(addresses.values()), f"http://{HOST}:{port}")
    # This process becomes the server, so another one waits for it.
    subprocess.Popen([sys.executable, "-m", __name__, str(port), str(os.getpid()), address])
    command = server_command(uri, artifact_root, port)
    # Replaces this process, so that a signal that ends it ends the server.
    os.execv(command[0], command)


def tell_when_ready(port: int, server: int, address: str) -> None:
    """Print the address once the server answers.

    Args:
        port: Where it will answer.
        server: Its process; if that ends, there is nothing to wait for.
        address: What to open.
    """
    while os.getppid() == server:
        connection = http.client.HTTPConnection(HOST, port, timeout=10)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == http.client.OK:
                print(f"MLflow UI is ready: {address}", flush=True)
                return
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(POLL_SECONDS)


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        # As the server does: a port that only waits for old connections to fade is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UserError(f"Port {port} is taken; choose another: emea ui --port N") from error


if __name__ == "__main__":
    try:
        tell_when_ready(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    except KeyboardInterrupt:
        sys.exit(130)
