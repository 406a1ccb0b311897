"""A service about a small graph with a thousand names, over HTTP."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import numpy as np
import pytest

from emea.data.attributes import AttributeTriples
from emea.data.graph import KnowledgeGraph
from emea.explain.facts import Facts
from emea.run.finished_run import FinishedRun
from emea.serve.app import Service
from emea.serve.curator import Curator
from emea.serve.guard import Guard
from emea.serve.limits import Limits
from emea.serve.reconciliation import Reconciliation
from emea.serve.server import bound_socket, server_of

NUM_PLACES = 1000
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
BASE = "http://places.example.org/"
ATTACK = "<script>alert(1)</script>\"'&\u2028"

PARTS = [
    [a + b for a in ("al", "bor", "cem", "dru", "elg") for b in ("ani", "eko")],
    [a + b for a in ("fen", "gost", "hil", "jer", "kov") for b in ("or", "ub")],
    ["burg", "dorf", "feld", "hof", "kirchen", "see", "stadt", "tal", "wald", "weiler"],
]


def place_name(number: int) -> str:
    """A name that no other place has."""
    digits = number // 100, number // 10 % 10, number % 10
    return " ".join(
        part[digit] for part, digit in zip(PARTS, digits, strict=True)
    ).title()


@pytest.fixture(scope="session")
def facts() -> Facts:
    """Places with a population and a neighbour, two types, a name that is an attack, and twins."""
    labels = [
        *map(place_name, range(NUM_PLACES)),
        "Village",
        "Town",
        ATTACK,
        "Twin",
        "Twin",
    ]
    names = [f"{BASE}{number}" for number in range(NUM_PLACES)]
    names += [f"{BASE}Village", f"{BASE}Town", ATTACK, f"{BASE}twin/1", f"{BASE}twin/2"]
    places = np.arange(NUM_PLACES)
    kinds = np.stack([places, places * 0, NUM_PLACES + places % 2], axis=1)
    near = np.stack([places, places * 0 + 1, (places + 1) % NUM_PLACES], axis=1)
    population = np.stack([places, places * 0, places], axis=1)
    attributes = AttributeTriples(
        np.concatenate([population, [[NUM_PLACES + 2, 0, NUM_PLACES]]]),
        ["population"],
        [*(str(100 * one) for one in range(NUM_PLACES)), ATTACK],
        np.zeros(NUM_PLACES + 1, dtype=np.int64),
    )
    triples = np.concatenate([kinds, near])
    graph = KnowledgeGraph(
        triples, len(names), 2, names, [TYPE, f"{BASE}near"], attributes, labels
    )
    return Facts(graph)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Sends requests to a service."""

    def __init__(self, port: int, service: Service) -> None:
        self.port = port
        self.service = service

    def __call__(
        self,
        path: str,
        body: str | bytes | None = None,
        **headers: str,
    ) -> Answer:
        """Send a request; a name of a header is written with underscores."""
        method = headers.pop("method", "GET" if body is None else "POST")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        try:
            connection.request(method, path, body, given)
            found = connection.getresponse()
            shown = {key.lower(): value for key, value in found.getheaders()}
            return Answer(found.status, shown, found.read().decode())
        finally:
            connection.close()

    def form(self, path: str = "/reconcile", **fields: Any) -> Answer:
        """Send fields with JSON values as a form, as OpenRefine does."""
        body = urlencode({key: json.dumps(value) for key, value in fields.items()})
        return self(path, body, Content_Type="application/x-www-form-urlencoded")

    def get(self, path: str, **fields: str) -> Answer:
        pairs = (f"{key}={quote(value, safe='')}" for key, value in fields.items())
        return self(f"{path}?{'&'.join(pairs)}")

    def post(self, path: str, **fields: Any) -> Answer:
        return self(path, json.dumps(fields), Content_Type="application/json")


@pytest.fixture(scope="session")
def run(finished: Callable[[str], FinishedRun]) -> FinishedRun:
    return finished("paris")


Serve = Callable[..., Any]


@pytest.fixture(scope="session")
def serve(
    facts: Facts, run: FinishedRun, tmp_path_factory: pytest.TempPathFactory
) -> Serve:
    """Serves the places, and the decisions about a small run, with other guards and limits."""
    reconciliation = Reconciliation(facts, "places:target", Limits())
    sides = Facts(run.pair.source), Facts(run.pair.target)

    @contextmanager
    def serving(
        guard: Guard | None = None,
        limits: Limits | None = None,
        others: Facts | None = None,
    ) -> Iterator[Client]:
        limits = limits or Limits()
        served = reconciliation
        if others is not None:
            served = Reconciliation(others, "others:target", limits)
        file: Path = tmp_path_factory.mktemp("served") / "decisions.tsv"
        served.limits = limits
        service = Service(
            served,
            Curator(run, sides, file),
            guard or Guard("127.0.0.1"),
            limits,
        )
        listening = bound_socket("127.0.0.1", 0)
        server = server_of(service.app(), limits)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield Client(listening.getsockname()[1], service)
        finally:
            server.should_exit = True
            thread.join(20)
            reconciliation.limits = Limits()
        assert not thread.is_alive()

    return serving


@pytest.fixture(scope="module")
def client(serve: Serve) -> Iterator[Client]:
    with serve() as made:
        yield made
