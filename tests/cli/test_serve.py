"""``emea serve`` from the command line to the file of decisions."""

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from emea.answer.curation import Curated
from emea.answer.decided_pairs import write_decided
from emea.cli import serve
from emea.cli.main import main as emea
from emea.errors import UserError
from emea.run.finished_run import FinishedRun

Finished = Callable[[str], FinishedRun]


def test_other_machines_need_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(serve.TOKEN_VARIABLE, raising=False)
    assert serve.token_for("127.0.0.1") == serve.token_for("localhost") == ""
    tokens = {serve.token_for(host) for host in ("0.0.0.0", "::", "10.0.0.1", "name")}
    assert len(tokens) == 4 and all(len(one) >= 32 for one in tokens)
    monkeypatch.setenv(serve.TOKEN_VARIABLE, "a" * 16)
    assert serve.token_for("127.0.0.1") == serve.token_for("0.0.0.0") == "a" * 16


def test_the_address_that_is_shown_can_be_opened() -> None:
    hosts = {
        "0.0.0.0": "127.0.0.1",
        "::": "[::1]",
        "::1": "[::1]",
        "10.0.0.1": "10.0.0.1",
        "localhost": "localhost",
    }
    for host, shown in hosts.items():
        assert serve.base_address(host, 8700, "") == f"http://{shown}:8700"
    assert serve.base_address("0.0.0.0", 1, "abc") == "http://127.0.0.1:1/abc"


@pytest.mark.parametrize("token", ["short", "a" * 15, "a/" * 10, "é" * 20, "a" * 129])
def test_a_weak_token_is_refused(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(serve.TOKEN_VARIABLE, token)
    with pytest.raises(UserError, match="16 to 128"):
        serve.token_for("127.0.0.1")


@pytest.mark.parametrize("origin", ["*", "null", "refine.org", "https://a.org/path"])
def test_origins_are_checked(
    origin: str, finished: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    assert emea(["serve", str(finished("paris").folder), "--origin", origin]) == 1
    assert "--origin must be an origin such as" in capsys.readouterr().err


def test_a_port_in_use_is_one_sentence(
    finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        out = ["--port", port, "--out", str(tmp_path / "new" / "d.tsv")]
        assert emea(["serve", str(finished("paris").folder), *out]) == 1
    assert f"port {port} cannot be used" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_file_of_decisions_is_continued(
    finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_decided(tmp_path / "d.tsv", [Curated("a", "b", "accepted")])
    before = (tmp_path / "d.tsv").read_bytes()
    host = ["--host", "192.0.2.1", "--out", str(tmp_path / "d.tsv")]
    assert emea(["serve", str(finished("paris").folder), *host]) == 1
    # the file is not refused, the address is
    assert "192.0.2.1, port 8700 cannot be used" in capsys.readouterr().err
    assert (tmp_path / "d.tsv").read_bytes() == before


def test_files_of_others_are_not_replaced(
    finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(finished("paris").folder)
    (tmp_path / "notes.tsv").write_text("mine")
    assert emea(["serve", run, "--out", str(tmp_path / "notes.tsv")]) == 1
    assert "was not written by emea" in capsys.readouterr().err
    assert emea(["serve", run, "--out", f"{run}/decisions.tsv"]) == 1
    assert "belongs to a run" in capsys.readouterr().err
    assert (tmp_path / "notes.tsv").read_text() == "mine"


def test_a_missing_package_is_one_sentence(
    finished: Finished,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [one for one in sys.modules if one.startswith("emea.serve.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    run, out = str(finished("paris").folder), str(tmp_path / "d.tsv")
    assert emea(["serve", run, "--out", out]) == 1
    assert "emea serve needs uvicorn, which MLflow brings" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("default_signals")
def test_the_service_runs_until_it_is_interrupted(
    finished: Finished, tmp_path: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run, file = finished("paris"), tmp_path / "d.tsv"
    command = [sys.executable, "-m", "emea", "serve", str(run.folder)]
    command += ["--port", str(port), "--out", str(file), "--author", "Ada"]
    a, b = run.split.test[0].tolist()
    pair = {
        "source": run.pair.source.entity_name(a),
        "target": run.pair.target.entity_name(b),
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first.endswith(f"http://127.0.0.1:{port}/reconcile\n")
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            kind = {"Content-Type": "application/json"}
            connection.request("POST", "/api/accept", json.dumps(pair), kind)
            assert connection.getresponse().status == 200
            again = subprocess.run(command, capture_output=True, text=True)
            assert again.returncode == 1 and "is in use by another" in again.stderr
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            process.kill()
    _, row = file.read_text().splitlines()
    assert row.split("\t")[:4] == [pair["source"], pair["target"], "accepted", "Ada"]
    assert [one.name for one in tmp_path.iterdir()] == ["d.tsv"]
