"""The UI as a person starts it, on a port of its own."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emea.tracking.ui import HOST

ROOT = Path(__file__).resolve().parents[2]
LOG_FILE = "server.log"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def ask(url: str, body: dict[str, Any] | None = None) -> bytes:
    """What the server answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


@contextmanager
def served(uri: str, folder: Path) -> Iterator[str]:
    """The address of a UI of the store; what the server says lies in the folder."""
    port = free_port()
    command = [sys.executable, "-m", "emea.tracking", "ui", "--port", str(port), "--uri", uri]
    with open(folder / LOG_FILE, "w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
        )
    address = f"http://{HOST}:{port}"
    try:
        for _ in range(120):
            try:
                ask(f"{address}/health")
                break
            except OSError:
                assert process.poll() is None, (folder / LOG_FILE).read_text()
                time.sleep(0.5)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)
