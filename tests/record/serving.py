"""MLflow's server, as a person starts it, on a port of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from emea.record.ui import HOST

ROOT = Path(__file__).resolve().parents[2]
LOG_FILE = "server.log"


def free_port() -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def ask(url: str, body: dict[str, Any] | None = None) -> bytes:
    """What the server answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


class Server:
    """A process, with those it starts, that answers at an address; it speaks into the folder."""

    def __init__(self, command: Sequence[str], port: int, folder: Path) -> None:
        self.address = f"http://{HOST}:{port}"
        self._log = folder / LOG_FILE
        with open(self._log, "a") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=os.environ
                | {
                    "PYTHONPATH": str(ROOT),
                    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self) -> None:
        for _ in range(120):
            try:
                ask(f"{self.address}/health")
                return
            except OSError:
                assert self._process.poll() is None, self._log.read_text()
                time.sleep(0.5)
        raise TimeoutError(self._log.read_text())

    def wait_for_text(self, pattern: str) -> str:
        """The first text of the log that matches, which may come after the first answer."""
        for _ in range(120):
            if found := re.search(pattern, self._log.read_text()):
                return found.group()
            assert self._process.poll() is None, self._log.read_text()
            time.sleep(0.5)
        raise TimeoutError(self._log.read_text())

    def signal_all(self, number: signal.Signals) -> None:
        """What happens to a machine happens to all its processes."""
        os.killpg(self._process.pid, number)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)

    def close(self) -> None:
        """Stop the server and remove its files, whether or not the test passed."""
        with suppress(ProcessLookupError):
            self.signal_all(signal.SIGKILL)
        self._process.wait(timeout=30)


@contextmanager
def served(uri: str, folder: Path) -> Iterator[str]:
    """The address of a UI of the store; what the server says lies in the folder."""
    port = free_port()
    command = [sys.executable, "-m", "emea", "ui", "--port", str(port), "--uri", uri]
    server = Server(command, port, folder)
    try:
        server.wait()
        server.wait_for_text(r"http://\S+")
        yield server.address
        server.stop()
    finally:
        server.close()


@contextmanager
def mlflow_server(uri: str, folder: Path, port: int | None = None) -> Iterator[Server]:
    """A server that also keeps the runs' files, as for runs on other machines."""
    port = port or free_port()
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
    command += ["--workers", "1", "--backend-store-uri", uri]
    server = Server(
        [*command, "--artifacts-destination", str(folder / "files")], port, folder
    )
    try:
        server.wait()
        yield server
    finally:
        server.close()
