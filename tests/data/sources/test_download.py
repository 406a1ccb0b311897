"""Downloads from a local server that behaves well, and badly."""

import errno
import json
import logging
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from unittest.mock import Mock

import pytest

from emea.data.sources import download
from emea.data.sources.download import (
    ensure_downloaded,
    git_blob_id,
    load_source,
    locate,
)
from emea.errors import DataError

COMMIT = "c0ffee"
CONTENTS = {"triples_1": b"0\t1\t2\n", "ref_ent_ids": b"0\t10\n"}


class Server(ThreadingHTTPServer):
    """Serves ``pages``; a path in ``truncated`` promises more than it sends."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages = {
            f"/me/repo/{COMMIT}/data/{name}": text for name, text in CONTENTS.items()
        }
        self.truncated: set[str] = set()
        self.requested: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requested.append(self.path.rsplit("/", 1)[1])
        content = self.server.pages.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        extra = 10 if self.path in self.server.truncated else 0
        self.send_header("Content-Length", str(len(content) + extra))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        name: {"path": f"data/{name}", "git_blob_sha1": git_blob_id(text)}
        for name, text in CONTENTS.items()
    }
    path = tmp_path / "sources.json"
    path.write_text(
        json.dumps({"mini": {"github": "me/repo", "commit": COMMIT, "files": files}})
    )
    monkeypatch.setattr(download, "SOURCES", path)
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "root" / "mini"


def found(folder: Path) -> dict[str, bytes]:
    return (
        {path.name: path.read_bytes() for path in folder.iterdir()}
        if folder.is_dir()
        else {}
    )


def test_git_blob_id() -> None:
    # What `git hash-object` says about a file with the line "hello".
    assert git_blob_id(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_good_files_then_nothing_to_do(
    server: Server, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        ensure_downloaded(folder, "mini", server.url)
    assert found(folder) == CONTENTS
    assert len(caplog.records) == 2
    assert "Downloading triples_1 (6 bytes) from" in caplog.text
    server.requested.clear()
    ensure_downloaded(folder, "mini", server.url)
    assert server.requested == []


def test_own_files_are_left_alone(server: Server, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "triples_1").write_text("my own")
    ensure_downloaded(folder, "mini", server.url)
    assert found(folder) == CONTENTS | {"triples_1": b"my own"}
    assert server.requested == ["ref_ent_ids"]


def test_interruption_while_writing_leaves_nothing(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(source: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(download.os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ensure_downloaded(folder, "mini", server.url)
    assert found(folder) == {}
    ensure_downloaded(folder, "mini", server.url)
    assert found(folder) == CONTENTS


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            "truncated",
            "The download of triples_1 from .* was interrupted after 6 bytes. Try again",
        ),
        (
            "changed",
            "triples_1 from .* is not the expected file: its git id is .* instead of ",
        ),
        ("missing", "triples_1 cannot be downloaded: .*/triples_1 returns HTTP 404"),
    ],
)
def test_a_file_that_is_not_the_pinned_one_is_not_kept(
    server: Server, folder: Path, problem: str, message: str
) -> None:
    path = f"/me/repo/{COMMIT}/data/triples_1"
    if problem == "truncated":
        server.truncated.add(path)
    elif problem == "changed":
        server.pages[path] = b"something else"
    else:
        del server.pages[path]
    with pytest.raises(DataError, match=message):
        ensure_downloaded(folder, "mini", server.url)
    assert found(folder) == {}


def test_no_network(folder: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(DataError) as error:
        ensure_downloaded(folder, "mini", base_url)
    message = str(error.value)
    assert message.startswith(
        f"{base_url}/me/repo/{COMMIT}/data/triples_1 cannot be reached ("
    )
    assert message.endswith(
        f". Put triples_1, ref_ent_ids into {folder}, from data in https://github.com/me/repo "
        f"at commit {COMMIT}, or set EMEA_DATA to the folder that contains your data sets."
    )
    assert found(folder) == {}


def test_folder_that_cannot_be_written(server: Server, folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file in the way")
    with pytest.raises(DataError, match="triples_1 cannot be written: "):
        ensure_downloaded(folder, "mini", server.url)


def test_folder_that_may_not_be_read(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = Mock(
        side_effect=PermissionError(errno.EACCES, "Permission denied", "/secret")
    )
    monkeypatch.setattr(Path, "is_file", denied)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        ensure_downloaded(folder, "mini", server.url)


def test_pinned_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        download, "SOURCES", Path(download.__file__).with_name("sources.json")
    )
    for key in (
        "dbp15k_zh",
        "dbp15k_ja",
        "dbp15k_fr",
        "dwy100k_dbp_wd",
        "dwy100k_dbp_yg",
    ):
        files = load_source(key)["files"]
        assert {
            "triples_1",
            "triples_2",
            "ent_ids_1",
            "ent_ids_2",
            "ref_ent_ids",
        } <= set(files)
        assert all(len(file["git_blob_sha1"]) == 40 for file in files.values())


def test_root_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMEA_DATA", "/elsewhere")
    assert locate("a/b") == Path("/elsewhere/a/b")
    assert locate("a/b", "/top") == Path("/top/a/b")
    assert locate("/absolute") == Path("/absolute")


def test_the_id_of_a_file_that_is_not_pinned_is_logged(
    server: Server, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facts = json.loads(download.SOURCES.read_text())
    del facts["mini"]["files"]["triples_1"]["git_blob_sha1"]
    download.SOURCES.write_text(json.dumps(facts))
    ensure_downloaded(folder, "mini", server.url)
    assert found(folder) == CONTENTS
    [message] = [
        one.getMessage() for one in caplog.records if one.levelname == "WARNING"
    ]
    assert message == (
        "triples_1 was not compared with a known content: its git id is "
        f"{git_blob_id(CONTENTS['triples_1'])}"
    )
