"""Checks each request before it is read: host, origin and token."""

import hmac
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from emea.serve.limits import RequestError

LOCAL_NAME = "localhost"

TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}")
"""A token is part of addresses, and too long to guess."""


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine: ``localhost`` or an address such as 127.0.0.1."""
    if host == LOCAL_NAME:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Guard:
    """Decides which requests are answered.

    Args:
        host: The address at which the service listens.
        token: What a request must contain; empty if none is needed.
        origins: Further origins whose pages may use the service, such as
            ``https://refine.example.org``. Pages of this machine may use it always.
    """

    host: str
    token: str = ""
    origins: Sequence[str] = ()

    def check(self, host: str, origin: str | None) -> None:
        """Check the headers ``Host`` and ``Origin`` of a request.

        A page of another site can make its own name resolve to this machine (DNS rebinding), but
        then the browser sends this name as the host. A number cannot be rebound.

        Raises:
            RequestError: If the service does not answer them.
        """
        name = _host_of(f"//{host}")
        is_own = is_loopback(name) or (
            not is_loopback(self.host) and (name == self.host or _is_address(name))
        )
        if not is_own:
            raise RequestError(403, "This host name is not served. Use the address.")
        if origin is not None and not self.allows(host, origin):
            raise RequestError(403, "Pages of this origin may not use the service.")

    def allows(self, host: str, origin: str) -> bool:
        """Return whether the pages of an origin may use the service.

        Args:
            host: The host of the request.
            origin: The origin of the page.
        """
        is_web = origin.startswith(("http://", "https://"))
        own = f"http://{host}", f"https://{host}"
        return (is_web and is_loopback(_host_of(origin))) or origin in (
            *own,
            *self.origins,
        )

    def inside(self, path: str, authorization: str) -> str:
        """Return the path without the token, which is its first part or in a header.

        Raises:
            RequestError: If the token is missing or wrong.
        """
        if not self.token:
            return path
        _, first, *rest = [*path.split("/", 2), ""]
        scheme, _, given = authorization.partition(" ")
        if scheme.casefold() == "bearer" and self._is_token(given):
            return path
        if self._is_token(first):
            return f"/{rest[0]}"
        raise RequestError(401, "The token is missing or wrong.")

    def _is_token(self, text: str) -> bool:
        # the time of the comparison does not tell how much is right
        return hmac.compare_digest(text.encode(errors="replace"), self.token.encode())


def _host_of(address: str) -> str:
    """Return the host of an address in lower case; empty if there is none."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # an invalid port is an error
        is_plain = address.endswith(f"//{parts.netloc}") and "@" not in parts.netloc
        return (parts.hostname or "").lower() if is_plain else ""
    except ValueError:
        return ""
