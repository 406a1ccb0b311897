"""The service over HTTP: addresses, bodies, headers and errors.

Responses are JSON only, never JSONP: a page that loads them as a script must not read them.
"""

import json
import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from emea.answer.curation import ACCEPTED, REJECTED
from emea.errors import UserError
from emea.record.checked_files import json_object
from emea.serve.curator import Curator
from emea.serve.guard import Guard
from emea.serve.limits import Limits, RequestError
from emea.serve.preview import preview
from emea.serve.reconciliation import Reconciliation

JSON, FORM = "application/json", "application/x-www-form-urlencoded"

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the address may contain the token
}

LOCAL_PAGES = "http://127.0.0.1:* http://localhost:*"
"""Pages that may show previews in a frame, such as those of OpenRefine on this machine."""

MOST_FIELDS = 10
"""Fields of a form."""


class Service:
    """Answers requests about one run, one at a time.

    Args:
        reconciliation: Reconciles names with the entities of one graph.
        curator: Answers about matches, and keeps decisions.
        guard: Decides which requests are answered.
        limits: Limits of a request.
    """

    def __init__(
        self,
        reconciliation: Reconciliation,
        curator: Curator,
        guard: Guard,
        limits: Limits,
    ) -> None:
        self.reconciliation = reconciliation
        self.curator = curator
        self.guard = guard
        self.limits = limits
        self._lock = threading.Lock()

    def app(self) -> ASGIApp:
        """Return the application that a server runs."""
        decide = {"accept": ACCEPTED, "reject": REJECTED, "withdraw": ""}
        routes = [
            Route("/reconcile", self._reconcile, methods=["GET", "POST"]),
            Route("/reconcile/suggest/{kind}", self._suggest),
            Route("/reconcile/extend/properties", self._properties),
            Route("/reconcile/preview", self._preview),
            Route("/api/match", self._match),
            Route("/api/explain", self._explain),
            Route("/api/decisions", self._decisions),
            *(
                Route(f"/api/{name}", partial(self._decide, one), methods=["POST"])
                for name, one in decide.items()
            ),
        ]
        handlers: Any = {
            RequestError: _refused,
            UserError: _refused,
            404: _unknown,
            405: _unknown,
        }
        return self._guarded(Starlette(routes=routes, exception_handlers=handlers))

    def _guarded(self, app: ASGIApp) -> ASGIApp:
        """Return an application that checks requests first and adds headers to responses."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope)
            host = request.headers.get("host", "")
            origin = request.headers.get("origin")
            try:
                self.guard.check(host, origin)
                if request.method == "OPTIONS":  # a browser asks without the token
                    answer = _preflight()
                    await answer(scope, receive, _with_headers(send, self._own(origin)))
                    return
                authorization = request.headers.get("authorization", "")
                inside = self.guard.inside(scope["path"], authorization)
            except RequestError as error:
                answer = await _refused(request, error)
                await answer(scope, receive, _with_headers(send, HEADERS))
                return
            start = scope["path"].removesuffix(inside)
            # the manifest names addresses with the token if the request had it in its own
            inner = {**scope, "path": inside, "raw_path": b"", "start": start}
            await app(inner, receive, _with_headers(send, self._own(origin)))

        return guarded

    def _own(self, origin: str | None) -> dict[str, str]:
        """Return the headers of a response to a page of an allowed origin."""
        pages = " ".join([LOCAL_PAGES, *self.guard.origins])
        policy = (
            f"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors {pages}"
        )
        headers = {**HEADERS, "Content-Security-Policy": policy, "Vary": "Origin"}
        if origin is not None:
            headers["Access-Control-Allow-Origin"] = origin
        return headers

    async def _locked(self, work: Callable[..., Any], *values: Any) -> Response:
        """Compute an answer in a thread, so that others can be refused meanwhile."""

        def compute() -> str:
            with self._lock:
                # without characters outside ASCII, which half a surrogate pair may be
                return json.dumps(work(*values), allow_nan=False)

        return Response(await run_in_threadpool(compute), media_type=JSON)

    async def _reconcile(self, request: Request) -> Response:
        fields = request.query_params
        found = {key: fields[key] for key in ("queries", "extend") if key in fields}
        if request.method == "POST":
            _check_type(request, FORM)
            form = _fields(await self._body(request))
            found = {key: form[key][0] for key in ("queries", "extend") if key in form}
        if "queries" in found:
            return await self._locked(
                self.reconciliation.answer, _parsed(found["queries"].encode())
            )
        if "extend" in found:
            return await self._locked(
                self.reconciliation.extend, _parsed(found["extend"].encode())
            )
        base = (
            f"{request.url.scheme}://{request.headers['host']}{request.scope['start']}"
        )
        return await self._locked(self.reconciliation.manifest, f"{base}/reconcile")

    async def _suggest(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in ("entity", "property", "type"):
            return await _unknown(request, None)
        prefix = request.query_params.get("prefix", "")
        return await self._locked(self.reconciliation.suggest, kind, prefix)

    async def _properties(self, request: Request) -> Response:
        fields = request.query_params
        return await self._locked(
            self.reconciliation.properties, fields.get("type", ""), fields.get("limit")
        )

    async def _preview(self, request: Request) -> Response:
        facts = self.reconciliation.facts
        entity = facts.entity(request.query_params.get("id", ""))
        if entity is None:
            raise RequestError(404, "There is no entity with this id.")
        page = await run_in_threadpool(preview, facts, entity)
        return Response(page.encode(errors="replace"), media_type="text/html")

    async def _match(self, request: Request) -> Response:
        entity = request.query_params.get("entity", "")
        return await self._locked(self.curator.match, entity)

    async def _explain(self, request: Request) -> Response:
        fields = request.query_params
        pair = fields.get("source", ""), fields.get("target")
        return await self._locked(self.curator.explain, *pair)

    async def _decisions(self, request: Request) -> Response:
        return await self._locked(self.curator.decisions)

    async def _decide(self, decision: str, request: Request) -> Response:
        # a form of another site cannot have this type
        _check_type(request, JSON)
        given = _parsed(await self._body(request))
        return await self._locked(self.curator.decide, decision, given)

    async def _body(self, request: Request) -> bytes:
        """Return the body of a request.

        Raises:
            RequestError: If it is too large.
        """
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > self.limits.num_bytes:
                most = f"{self.limits.num_bytes:,} bytes"
                raise RequestError(413, f"The request is larger than {most}.")
        return bytes(body)


def _check_type(request: Request, kind: str) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != kind:
        raise RequestError(415, f"The content type must be {kind}.")


def _fields(body: bytes) -> dict[str, list[str]]:
    """Return the fields of a form.

    Raises:
        RequestError: If it has too many.
    """
    try:
        return parse_qs(body.decode(errors="replace"), max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise RequestError(400, f"A form may have {MOST_FIELDS} fields.") from error


def _parsed(text: bytes) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        RequestError: If the text is not one.
    """
    try:
        return json_object(text)
    except ValueError as error:
        raise RequestError(400, f"The JSON is not valid: {error}.") from error


async def _refused(request: Request, error: Exception) -> Response:
    """Return an error as one sentence. The rest of the request is not read."""
    status = error.status if isinstance(error, RequestError) else 500
    return Response(
        json.dumps({"error": str(error)}),
        status,
        headers={"Connection": "close"} if status == 413 else None,
        media_type=JSON,
    )


async def _unknown(request: Request, error: Exception | None) -> Response:
    message = "There is no such address. The service is at /reconcile and /api/match."
    return await _refused(request, RequestError(404, message))


def _preflight() -> Response:
    headers = {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Content-Type, Authorization",
    }
    return Response(status_code=204, headers=headers)


def _with_headers(send: Send, headers: dict[str, str]) -> Send:
    """Return a function that adds headers to the start of a response."""

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            added = [
                (key.lower().encode(), value.encode()) for key, value in headers.items()
            ]
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return sending
