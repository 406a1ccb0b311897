"""What a stranger may send to the service, and what must not happen."""

import json
import socket
import time
from collections.abc import Iterator

import pytest

from emea.serve.guard import Guard
from emea.serve.limits import Limits

from .conftest import ATTACK, BASE, Client, Serve

TOKEN = "Abcdefghijklmnop-1234_"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def small(serve: Serve) -> Iterator[Client]:
    limits = Limits(
        num_bytes=2000, num_queries=3, connection_seconds=1, num_connections=5
    )
    with serve(limits=limits) as made:
        yield made


@pytest.fixture(scope="module")
def public(serve: Serve) -> Iterator[Client]:
    """Listens to other machines, as far as the checks are concerned."""
    guard = Guard("refine.example.org", TOKEN, ["https://pages.example.org"])
    with serve(guard) as made:
        yield made


def test_large_bodies_are_refused_before_they_are_read(small: Client) -> None:
    found = small("/reconcile", b"queries=" + b"a" * 100_000, Content_Type=FORM)
    assert found.status == 413 and "larger than" in found.json["error"]
    found = small("/api/accept", b"{" + b" " * 3000, Content_Type="application/json")
    assert found.status == 413


def test_a_body_without_an_end_is_refused(small: Client) -> None:
    with socket.create_connection(("127.0.0.1", small.port), timeout=10) as raw:
        head = (
            f"POST /reconcile HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {FORM}\r\n"
        )
        raw.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        with Closing():
            for _ in range(1000):
                raw.sendall(b"64\r\n" + b"a" * 100 + b"\r\n")
        assert b"413" in raw.recv(100)


def test_many_fields_are_refused(small: Client) -> None:
    found = small("/reconcile", "a=1&" * 11, Content_Type=FORM)
    assert found.status == 400 and "fields" in found.json["error"]


def test_large_batches_are_refused(small: Client) -> None:
    batch = {str(number): {"query": "a"} for number in range(4)}
    assert small.form(queries=batch).status == 413
    batch.popitem()
    assert small.form(queries=batch).status == 200
    wanted = {"ids": list("abcd"), "properties": []}
    assert small.form(extend=wanted).status == 413


def test_a_long_computation_ends(serve: Serve) -> None:
    with serve(limits=Limits(seconds=-1)) as client:
        found = client.form(queries={"q": {"query": "a"}})
        assert found.status == 503 and "smaller batches" in found.json["error"]
        wanted = {"ids": [f"{BASE}1"], "properties": [{"id": "population"}]}
        assert client.form(extend=wanted).status == 503


def test_too_many_results_and_properties(client: Client) -> None:
    found = client.form(queries={"q": {"query": "Alani", "limit": 10**9}})
    assert len(found.json["q"]["result"]) <= Limits().num_results
    many = [{"pid": "population", "v": 1}] * 101
    assert client.form(queries={"q": {"query": "a", "properties": many}}).status == 413
    types = {"query": "a", "type": list(map(str, range(101)))}
    assert client.form(queries={"q": types}).status == 413


@pytest.mark.parametrize("sent", [b"", b"POST /reconcile HTT", b"slow body"])
def test_slow_clients_are_disconnected(small: Client, sent: bytes) -> None:
    if sent == b"slow body":
        sent = (
            f"POST /reconcile HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {FORM}\r\n"
            "Content-Length: 100\r\n\r\nquer"
        ).encode()
    with socket.create_connection(("127.0.0.1", small.port), timeout=10) as raw:
        raw.sendall(sent)
        began = time.monotonic()
        with Closing():
            while raw.recv(1000):
                pass
        assert 0.5 < time.monotonic() - began < 8
    assert small("/reconcile").status == 200


def test_many_clients_at_once_are_refused(small: Client) -> None:
    time.sleep(0.1)
    address = ("127.0.0.1", small.port)
    waiting = [socket.create_connection(address, timeout=10) for _ in range(8)]
    try:
        time.sleep(0.2)
        assert small("/reconcile").status == 503
    finally:
        for one in waiting:
            one.close()
    time.sleep(0.2)
    assert small("/reconcile").status == 200


HOSTS = {
    "attacker.example.org": 403,
    "127.0.0.1.example.org": 403,
    "localhost.example.org:8700": 403,
    "example.org@127.0.0.1": 403,
    "127.0.0.1/x": 403,
    "127.0.0.1:99999": 403,
    "192.168.0.1": 403,
    "": 403,
    "localhost": 200,
    "LOCALHOST:1234": 200,
    "127.0.0.1:8700": 200,
    "[::1]:8700": 200,
}


@pytest.mark.parametrize("host", HOSTS)
def test_names_that_lead_here_by_dns_rebinding(client: Client, host: str) -> None:
    assert client("/reconcile", Host=host).status == HOSTS[host]


ORIGINS = {
    "https://attacker.example.org": 403,
    "null": 403,
    "file://": 403,
    "http://localhost.example.org": 403,
    "http://127.0.0.1@example.org": 403,
    "javascript://127.0.0.1": 403,
    "http://127.0.0.1:3333": 200,
    "http://localhost:3333": 200,
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_pages_of_other_origins(client: Client, origin: str) -> None:
    found = client("/reconcile", Origin=origin)
    assert found.status == ORIGINS[origin]
    allowed = found.headers.get("access-control-allow-origin")
    assert allowed == (origin if found.status == 200 else None)
    asked = client("/api/accept", method="OPTIONS", Origin=origin)
    assert asked.status == {200: 204, 403: 403}[ORIGINS[origin]]


def test_further_names_and_origins_that_the_user_allows(public: Client) -> None:
    path = f"/{TOKEN}/reconcile"
    for host in ("refine.example.org", "10.1.2.3:8700", "localhost"):
        assert public(path, Host=host).status == 200
    assert public(path, Host="other.example.org").status == 403
    assert public(path, Origin="https://pages.example.org").status == 200
    assert public(path, Origin="https://pages.example.org.evil.org").status == 403
    own = public(path, Host="10.1.2.3:8700", Origin="http://10.1.2.3:8700")
    assert own.status == 200


def test_wrong_tokens(public: Client) -> None:
    wrong = ["", TOKEN[:-1], TOKEN + "x", TOKEN.lower(), "%00", "é", "\udcff"]
    for token in wrong:
        path = f"/{token.encode('latin-1', 'replace').decode('latin-1')}/reconcile"
        path = path.encode("ascii", "replace").decode().replace("?", "%3F")
        assert public(path).status == 401, token
        assert public(f"/reconcile?token={TOKEN}").status == 401
        header = f"Bearer {token}".encode("latin-1", "replace").decode("latin-1")
        assert public("/reconcile", Authorization=header).status == 401, token
    assert public("/reconcile").json == {"error": "The token is missing or wrong."}
    for path in ("/api/decisions", "/reconcile/preview?id=x", "/nothing"):
        assert public(path).status == 401


def test_right_tokens(public: Client) -> None:
    found = public(f"/{TOKEN}/reconcile").json
    assert f"/{TOKEN}/reconcile/preview" in found["preview"]["url"]
    found = public("/reconcile", Authorization=f"Bearer {TOKEN}").json
    assert TOKEN not in json.dumps(found)
    assert public(f"/{TOKEN}/api/decisions").status == 200


def test_names_cannot_add_markup(client: Client) -> None:
    page = client.get("/reconcile/preview", id=ATTACK)
    assert page.status == 200 and "<script" not in page.body
    assert "&lt;script&gt;" in page.body
    found = client.form(queries={ATTACK: {"query": "script alert"}})
    assert found.headers["content-type"] == "application/json"
    assert found.headers["x-content-type-options"] == "nosniff"
    assert ATTACK in found.json
    unknown = client.get("/reconcile/preview", id="<script>")
    assert unknown.status == 404 and "<script" not in unknown.body


def test_there_are_no_callbacks(client: Client) -> None:
    for path in ("/reconcile", "/reconcile/suggest/entity", "/api/decisions"):
        found = client.get(path, prefix="a", callback="steal")
        assert "steal" not in found.body and found.json is not None
        assert found.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/reconcile/../../etc/passwd",
        "/reconcile/preview/..%2f..%2fetc%2fpasswd",
        "/reconcile/preview?id=../../../../etc/passwd",
        "/api/match?entity=/etc/passwd",
        "//etc/passwd",
        "/reconcile%00",
    ],
)
def test_paths_lead_to_no_file(client: Client, path: str) -> None:
    found = client(path)
    assert found.status == 404 and "root:" not in found.body


@pytest.mark.parametrize(
    "queries",
    [
        "[" * 100_000,
        "{" + '"a":' * 1000,
        "[]",
        "null",
        '"a"',
        '{"q": 1}',
        '{"q": {"query": 1}}',
        '{"q": {"query": ["a"]}}',
        '{"q": {"query": "a", "type": {"id": 1}}}',
        '{"q": {"query": "a", "type": [1]}}',
        '{"q": {"query": "a", "properties": {"pid": "p"}}}',
        '{"q": {"query": "a", "properties": [{"pid": 1, "v": 1}]}}',
        '{"q": {"query": "a", "properties": [{"pid": "p"}]}}',
        '{"q": {"query": "\\ud800"}}',
    ],
)
def test_malformed_batches(client: Client, queries: str) -> None:
    found = client("/reconcile", f"queries={queries}", Content_Type=FORM)
    assert found.status == 400 and found.json["error"]


@pytest.mark.parametrize(
    "query",
    [
        {"query": "", "limit": -5},
        {"query": "a" * 100_000, "limit": "many"},
        {"query": "\x00\u202e", "limit": 1e300, "type": None},
        {"query": "Alani", "type_strict": 5, "properties": None},
        {"query": "Alani", "properties": [{"pid": "population", "v": [None, {}, []]}]},
    ],
)
def test_odd_batches_are_answered(client: Client, query: object) -> None:
    assert client.form(queries={"q": query}).status == 200


def test_a_form_of_another_site_cannot_decide(client: Client) -> None:
    body = '{"source": "a", "target": "b"}'
    for kind in (FORM, "text/plain", "multipart/form-data", ""):
        assert client("/api/accept", body, Content_Type=kind).status == 415
    assert client("/reconcile", "queries={}", Content_Type="text/plain").status == 415
    assert client("/api/accept", method="GET").status == 404
    assert client("/api/accept", "[]", Content_Type="application/json").status == 400
    found = client.post("/api/accept", source=["a"], target="b")
    assert found.status == 400


def test_headers_of_proxies_change_nothing(client: Client) -> None:
    found = client(
        "/reconcile", X_Forwarded_Host="attacker.example.org", X_Forwarded_Proto="https"
    )
    assert "attacker" not in found.body and "https://127" not in found.body


class Closing:
    """Expects that the other end may close the connection meanwhile."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(
            kind, BrokenPipeError | ConnectionResetError
        )
