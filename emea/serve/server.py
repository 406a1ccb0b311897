"""Runs the service until it is interrupted, and disconnects clients that are too slow."""

import asyncio
import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from emea.errors import UserError
from emea.serve.limits import Limits

IDLE_SECONDS = 5
"""Time after which a connection without a request is closed."""

ENDING_SECONDS = 2
"""Time that requests have to end after an interrupt."""

BACKLOG = 128


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Args:
        host: A name or an address.
        port: The port; 0 means a free one.

    Raises:
        UserError: If the port is in use, or the address is not of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        listening = socket.socket(family, kind, protocol)
        # as for servers in general: a port that only waits for old connections counts as free
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"{host}, port {port} cannot be used: {reason}. Choose another: --host, --port"
        ) from error
    return listening


def server_of(app: ASGIApp, limits: Limits) -> uvicorn.Server:
    """Return a server of an application.

    Args:
        app: The application.
        limits: Time of a request and number of clients.
    """

    class Protocol(H11Protocol):
        """Ends a connection if a request takes too long to arrive, or its response to leave."""

        _watch: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._start_watch()

        def on_response_complete(self) -> None:
            self._start_watch()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._watch is not None:
                self._watch.cancel()
            super().connection_lost(exc)

        def _start_watch(self) -> None:
            if self._watch is not None:
                self._watch.cancel()
            self._watch = self.loop.call_later(
                limits.connection_seconds, self.transport.abort
            )

    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.num_connections,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=ENDING_SECONDS,
    )
    return uvicorn.Server(config)
