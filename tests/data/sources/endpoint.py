"""A SPARQL endpoint on loopback: a triple store behind an HTTP server."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs

import pyoxigraph
from pyoxigraph import QueryResultsFormat, QuerySolutions, QueryTriples, RdfFormat


class Endpoint:
    """Answers queries about the triples of a store.

    Args:
        triples: The content in N-Triples.

    Attributes:
        url: The address.
        queries: The queries so far.
        most_rows: The largest number of rows in an answer, as public endpoints have it.
        answers: Answers that replace the next ones: status, media type and content.
        headers: Further headers of all answers, which replace the usual ones.
    """

    def __init__(self, triples: str) -> None:
        self.store = pyoxigraph.Store()
        self.store.load(triples.encode(), format=RdfFormat.N_TRIPLES)
        self.url = ""
        self.queries: list[str] = []
        self.most_rows = 1_000_000
        self.answers: list[tuple[int, str, bytes]] = []
        self.headers: dict[str, str] = {}

    def answer(self, query: str) -> tuple[int, str, bytes]:
        """Return status, media type and content."""
        self.queries.append(query)
        if self.answers:
            return self.answers.pop(0)
        if "CONSTRUCT" in query:  # it has at most so many rows, as in a SELECT query
            limits = re.search(r"LIMIT (\d+)", query)
            least = min(self.most_rows, int(limits[1]) if limits else self.most_rows)
            query = re.sub(r"LIMIT \d+", f"LIMIT {least}", query)
        try:
            found = self.store.query(query)
        except SyntaxError as error:
            return 400, "text/plain", f"Cannot parse:\n{error}".encode()
        if isinstance(found, QueryTriples):
            content = found.serialize(format=RdfFormat.N_TRIPLES)
            return 200, "application/n-triples; charset=utf-8", content or b""
        assert isinstance(found, QuerySolutions)
        rows = [f"{row[0]}\t{row[1]}\t{row[2]}\n" for row in found][: self.most_rows]
        names = "\t".join(str(variable) for variable in found.variables)
        table = f"{names}\n{''.join(rows)}".encode()
        again = pyoxigraph.parse_query_results(table, format=QueryResultsFormat.TSV)
        assert isinstance(again, QuerySolutions)
        content = again.serialize(format=QueryResultsFormat.JSON)
        return 200, "application/sparql-results+json", content or b""


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[Endpoint]:
    """Serve an endpoint on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, media_type, content = endpoint.answer(parse_qs(body)["query"][0])
            self.send_response(status)
            length = {"Content-Length": str(len(content))}
            for name, value in ({"Content-Type": media_type} | length | endpoint.headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        endpoint.url = f"http://127.0.0.1:{server.server_port}/sparql"
        yield endpoint
        server.shutdown()
        thread.join()
