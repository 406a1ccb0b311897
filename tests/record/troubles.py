"""What can be the matter with a store, for real."""

import itertools
import math
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from emea.record.mlflow_client import lock_path
from emea.record.ui import HOST

HOLD_DATABASE = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1])
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""
HOLD_FILE = """
import fcntl, sys, time
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""
LONG = 3600.0


@contextmanager
def _held(code: str, path: Path, seconds: float) -> Iterator[None]:
    command = [sys.executable, "-c", code, str(path), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield
        finally:
            process.kill()


@contextmanager
def locked_database(database: Path, seconds: float = LONG) -> Iterator[None]:
    """Another process writes to it and does not come to an end."""
    with _held(HOLD_DATABASE, database, seconds):
        yield


@contextmanager
def locked_opening(database: Path, seconds: float = LONG) -> Iterator[None]:
    """Another process hangs while it opens the store."""
    pytest.importorskip("fcntl")
    with _held(HOLD_FILE, lock_path(database), seconds):
        yield


class Server(BaseHTTPRequestHandler):
    """Answers every request alike."""

    over = Event()

    def answer(self) -> None:
        raise NotImplementedError

    def handle_any(self) -> None:
        with suppress(OSError):  # whoever asked has left
            self.answer()

    do_GET = do_POST = do_PUT = do_PATCH = handle_any  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Silent(Server):
    """Takes requests and never answers."""

    def answer(self) -> None:
        self.over.wait()


class Dripping(Server):
    """Always seems to be about to answer."""

    def answer(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while not self.over.wait(0.1):
            self.wfile.write(b" ")


class Busy(Server):
    """Asks to come again in an hour."""

    def answer(self) -> None:
        self.send_response(503)
        self.send_header("Retry-After", "3600")
        self.send_header("Content-Length", "0")
        self.end_headers()


def slow(address: str, seconds: float, where: str = "", times: float = math.inf) -> type[Server]:
    """What passes requests on to a server at once, and some of its answers back much later."""
    answers = itertools.count()

    class Slow(Server):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {"Content-Type": self.headers.get("Content-Type") or "application/json"}
            url = f"{address}{self.path}"
            request = urllib.request.Request(url, body or None, headers, method=self.command)
            try:
                reply = urllib.request.urlopen(request, timeout=60)
            except urllib.error.HTTPError as error:
                reply = error
            content = reply.read()
            if where in self.path and next(answers) < times:
                self.over.wait(seconds)
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Slow


@contextmanager
def listening(kind: type[Server]) -> Iterator[str]:
    """The address at which such a server listens."""
    kind.over = Event()
    with ThreadingHTTPServer((HOST, 0), kind) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{server.server_address[1]}"
        kind.over.set()
        server.shutdown()


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A disk of its own, that can be filled without harm to others."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no disk can be mounted here: {error}")
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Leave no room on the disk; the file that takes it can be removed."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"1" * os.statvfs(disk).f_bsize)
    return filler


def wait_until(is_so: Callable[[], bool], seconds: float = 120.0) -> None:
    """Ask again and again."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
