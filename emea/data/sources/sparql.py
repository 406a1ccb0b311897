"""Reads a graph from a SPARQL endpoint, page by page, into a local copy."""

import hashlib
import io
import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

import pyoxigraph
from pyoxigraph import BlankNode, Literal, NamedNode, QueryResultsFormat, RdfFormat

from emea import __version__
from emea.data.formats.limits import MIB, current_limits, limit_error
from emea.data.formats.rdf_guards import MOST_QUOTED, TurtleGuard
from emea.data.sources.download import complete_file
from emea.errors import ConfigError, DataError, one_line

log = logging.getLogger(__name__)

PAGE_SIZE = 10_000
"""Rows of a page. Many public endpoints return at most this number."""

ALL_TRIPLES = "SELECT ?s ?p ?o WHERE { ?s ?p ?o }"
PAGE_MIB = 256
"""Largest size of a page."""

TIMEOUT_SECONDS, PAGE_SECONDS = 60.0, 600.0
"""Longest time without any data, and longest time for a page."""

WAITS = (1.0, 5.0, 15.0)
"""Seconds before each new attempt if the server is busy."""

BUSY = (429, 502, 503, 504)
PARTIAL = 206
QUERY_FILES = (".rq", ".sparql")
ACCEPTED = {
    "SELECT": "application/sparql-results+json",
    "CONSTRUCT": "application/n-triples, text/turtle;q=0.5",
}
_COMMENT_OR_TERM = re.compile(r"<[^<>\s]*>|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*")
_VARIABLE = re.compile(r"[?$]\w+")


def endpoint_name(url: str) -> str:
    """Return the host of an endpoint, as its name in results."""
    return urlsplit(url).hostname or "endpoint"


def endpoint_copy(url: str, query: str | None = None, page_size: int = PAGE_SIZE) -> Path:
    """Return a local copy of the triples of an endpoint, in N-Triples.

    An existing copy of the same query is used again. Blank nodes get new labels, and a blank node
    on two pages becomes two nodes, because the labels of a response are not valid in another one.

    Args:
        url: The address of the endpoint.
        query: A SELECT query with three variables, a CONSTRUCT query, or the name of a ``.rq`` or
            ``.sparql`` file with one. The default selects all triples of the default graph.
        page_size: Rows to request at once. A query with its own LIMIT is not paged.

    Raises:
        ConfigError: The query cannot be used.
        DataError: The endpoint cannot be reached, rejects the query, or returns too much.
    """
    if urlsplit(url).username is not None:
        raise ConfigError(
            "The address of an endpoint must not contain a user name or password: "
            "use an endpoint that is open to you."
        )
    pages = _Pages(url, _query_text(query), page_size)
    path = _copies() / f"{endpoint_name(url)}-{pages.digest()}.nt"
    if path.is_file():
        when = time.strftime("%Y-%m-%d", time.localtime(path.stat().st_mtime))
        log.info("Using the copy of %s from %s. Delete %s to query it again.", url, when, path)
        return path
    limits = current_limits()
    with complete_file(path) as file:
        for lines in pages:
            file.write(lines)
            if file.tell() > limits.size_mib * MIB:
                name = Path(endpoint_name(url))
                raise limit_error(name, "the size in MiB", "size_mib", limits)
    return path


def _copies() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "emea" / "sparql"


def _query_text(query: str | None) -> str:
    if query is None:
        return ALL_TRIPLES
    if query.strip().endswith(QUERY_FILES):
        path = Path(query.strip()).expanduser()
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The query file {path} cannot be read: {error}") from error
    return query


class _Pages:
    """Yields the pages of a query as N-Triples."""

    def __init__(self, url: str, query: str, page_size: int) -> None:
        bare = _COMMENT_OR_TERM.sub(" ", query)
        kind = re.search(r"\b(SELECT|CONSTRUCT)\b", bare, re.IGNORECASE)
        if kind is None:
            raise ConfigError("The query of an endpoint must be a SELECT or a CONSTRUCT query.")
        self.url, self.query, self.page_size = url, query, page_size
        self.kind = kind[1].upper()
        self.is_paged = re.search(r"\bLIMIT\b", bare, re.IGNORECASE) is None
        # the part after the last brace has the LIMIT of the whole query, and not of a subquery
        end = bare.rpartition("}")[2]
        limit = re.search(r"\bLIMIT\s+(\d+)", end, re.IGNORECASE)
        self.limit = int(limit[1]) if limit else None
        self.can_skip = re.search(r"\b(OFFSET|VALUES)\b", bare, re.IGNORECASE) is None
        self.is_ordered = re.search(r"\bORDER\s+BY\b", bare, re.IGNORECASE) is not None
        # the head of the query: variables of SELECT, or the template of CONSTRUCT
        head = re.split(r"(?i)\bWHERE\b|\{(?!.*\bWHERE\b)", bare[kind.end() :], flags=re.S)[0]
        named = _VARIABLE.findall(head) or _VARIABLE.findall(bare)
        self.variables = list(dict.fromkeys(named))
        self.most_per_row = 1 if self.kind == "SELECT" else _template_size(bare[kind.end() :])

    def digest(self) -> str:
        text = "\0".join((self.url, self.query, str(self.page_size)))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __iter__(self) -> Iterator[bytes]:
        offset = 0
        for page in range(1 << 40):
            lines, num_rows = self._page(page, self._asked(offset))
            yield lines
            if not self.is_paged:
                self._check_whole(num_rows)
            if not num_rows or not self.is_paged:
                return
            # a server may return fewer rows than requested, and CONSTRUCT does not show how many
            offset += min(self.page_size, -(-num_rows // self.most_per_row))
            log.info("Read %s rows from %s", f"{offset:,}", self.url)

    def _check_whole(self, num_rows: int) -> None:
        """Refuse the response to a query with a LIMIT if the server returned fewer rows."""
        if self.kind != "SELECT" or not self.can_skip or not num_rows:
            return
        if self.limit is not None and num_rows >= self.limit:
            return
        if self._page(1, f"{self.query}\nOFFSET {num_rows}")[1]:
            raise DataError(
                f"{self.url} returned only the first {num_rows:,} rows. A query with a LIMIT, also "
                "in a subquery, is not read in pages. Remove the LIMIT, or ask for less."
            )

    def _asked(self, offset: int) -> str:
        """Return the query for a page. Pages need an order, so that no row is lost between them."""
        if not self.is_paged:
            return self.query
        order = ""
        if not self.is_ordered and self.variables:
            order = f"\nORDER BY {' '.join(self.variables)}"
        return f"{self.query}{order}\nLIMIT {self.page_size}\nOFFSET {offset}"

    def _page(self, page: int, query: str) -> tuple[bytes, int]:
        """Return the lines of a page, and the number of its rows, or of its triples."""
        content, media_type = _answered(self.url, query, ACCEPTED[self.kind])
        name = endpoint_name(self.url)
        try:
            rows = _rows(content, media_type) if self.kind == "SELECT" else None
            rows = _triples(content, media_type, name) if rows is None else rows
        except (SyntaxError, ValueError) as error:
            raise DataError(
                f"{self.url} returned a response that is not valid {media_type}: {error}"
            ) from error
        lines = (_line(terms, page) for terms in rows)
        return "".join(line for line in lines if line).encode(), len(rows)


def _template_size(query: str) -> int:
    """Return the largest number of triples that a row of a CONSTRUCT query can have.

    Args:
        query: The query after the word CONSTRUCT, without IRIs and strings.
    """
    found = re.search(r"\{([^{}]*)", query)
    template = found[1].strip(" \t\r\n.") if found else ""
    in_lists = 2 * len(template.split()) if "(" in template else 0
    return 1 + len(re.findall(r"[.;,\[]", template)) + in_lists


def _answered(url: str, query: str, accepted: str) -> tuple[bytes, str]:
    """Return the response to a query and its media type."""
    headers = {"Accept": accepted, "User-Agent": f"emea/{__version__}"}
    request = Request(url, urlencode({"query": query}).encode(), headers)
    for wait in (*WAITS, None):
        try:
            with urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                media_type = response.headers.get("Content-Type") or "unknown"
                content = _body(response, url)
                _check_complete(response, len(content), url)
                return content, media_type.partition(";")[0].strip().lower()
        except HTTPError as error:
            if error.code not in BUSY or wait is None:
                raise DataError(_refusal(url, error)) from error
            log.info("%s is busy (HTTP %d). Trying again in %.0f s.", url, error.code, wait)
            time.sleep(wait)
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise DataError(
                f"The SPARQL endpoint {url} cannot be read ({reason}). Check the address and the "
                "connection, and try again."
            ) from error
    raise AssertionError("the last attempt raises an error")


def _body(response: io.BufferedIOBase, url: str) -> bytes:
    started, content = time.monotonic(), bytearray()
    while block := response.read(1 << 18):
        content += block
        if len(content) > PAGE_MIB * MIB:
            raise DataError(f"A page of {url} exceeds {PAGE_MIB} MiB. Set a smaller page_size.")
        if time.monotonic() - started > PAGE_SECONDS:
            raise DataError(f"A page of {url} takes too long. Set a smaller page_size.")
    return bytes(content)


def _check_complete(response: Any, num_bytes: int, url: str) -> None:
    """Refuse a response that is cut off, or that the server calls incomplete.

    Virtuoso returns what it found so far if a query takes too long, with a message in the header.
    """
    if response.status == PARTIAL or "X-SQL-State" in response.headers:
        reason = response.headers.get("X-SQL-Message") or f"HTTP {response.status}"
        raise DataError(
            f"{url} returned only a part of a page: {one_line(reason)[:300]}. Set a smaller "
            "page_size, or ask for less."
        )
    expected = response.headers.get("Content-Length", "")
    if expected.isdecimal() and num_bytes < int(expected):
        raise OSError(f"a response ends after {num_bytes:,} of {int(expected):,} bytes")


def _refusal(url: str, error: HTTPError) -> str:
    with suppress(OSError, HTTPException):
        reason = one_line(error.read(2000).decode("utf-8", "replace"))[:300]
        return f"{url} rejected the query (HTTP {error.code}): {reason}"
    return f"{url} rejected the query (HTTP {error.code})"


Terms = tuple[object, object, object]


def _rows(content: bytes, media_type: str) -> list[Terms]:
    """Return the rows of a SELECT query."""
    if media_type not in (ACCEPTED["SELECT"], "application/json"):
        raise ValueError("the answer of a SELECT query must be JSON")
    if content.count(b'"triple"') > MOST_QUOTED:
        raise ValueError("it contains too many quoted triples")
    found = pyoxigraph.parse_query_results(io.BytesIO(content), format=QueryResultsFormat.JSON)
    if not isinstance(found, pyoxigraph.QuerySolutions) or len(found.variables) != 3:
        raise ConfigError(
            "A SELECT query for a graph must have three variables: head, relation and tail."
        )
    return [(row[0], row[1], row[2]) for row in found]


def _triples(content: bytes, media_type: str, name: str) -> list[Terms]:
    """Return the triples of a CONSTRUCT query."""
    formats = {"application/n-triples": RdfFormat.N_TRIPLES, "text/turtle": RdfFormat.TURTLE}
    if media_type not in formats:
        raise ValueError("the answer of a CONSTRUCT query must be N-Triples or Turtle")
    guard = TurtleGuard(Path(name), has_lines=media_type != "text/turtle")
    guard.check(content)
    guard.check(b"")
    triples: list[Terms] = []
    for quad in pyoxigraph.parse(content, formats[media_type]):
        triples.append((quad.subject, quad.predicate, quad.object))
        guard.check_expanded(map(str, triples[-1]))
    return triples


def _line(terms: Terms, page: int) -> str:
    """Return a row as a line of N-Triples, or an empty text if it is not a triple."""
    head, relation, tail = terms
    if not isinstance(head, NamedNode | BlankNode) or not isinstance(relation, NamedNode):
        return ""
    if not isinstance(tail, NamedNode | BlankNode | Literal):
        return ""
    shown = (
        f"_:p{page}x{term.value}" if isinstance(term, BlankNode) else str(term)
        for term in (head, relation, tail)
    )
    return f"{' '.join(shown)} .\n"
