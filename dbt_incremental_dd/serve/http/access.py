"""From where the server may be used: by the address that it listens on, and not by pages of other sites."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

COOKIE = "dbt_dd_token"
SEND = "/sources/"
"""How the paths begin that events are sent to."""


@dataclass(frozen=True)
class Access:
    """``host``: the address the server listens on; on a loopback address, requests must name a loopback host, which
    prevents DNS rebinding. ``origins``: other sites whose pages may read from the server."""

    host: str = "127.0.0.1"
    origins: tuple[str, ...] = ()

    def refusal(self, connection: HTTPConnection) -> tuple[int, str] | None:
        """The HTTP status and the reason to refuse a request with; None if it is allowed."""
        host = _hostname(connection.headers.get("host", ""))
        if host is None:
            return 400, "the Host header is no host"
        if is_loopback(self.host) and not is_loopback(host):
            return 403, f"this server is not {host}: open it by the address that it listens on"
        origin = connection.headers.get("origin")
        if origin and origin not in self.origins and not _is_same(origin, connection.headers.get("host", "")):
            return (
                403,
                f"pages of {origin} may not read from this server; it can be started with --allow-origin {origin}",
            )
        if origin and connection.url.path.startswith(SEND) and not _is_same(origin, connection.headers.get("host", "")):
            return 403, "pages of other sites may not send events to this server"
        if not origin and _is_cross_site(connection):
            return 403, "pages of other sites may not read from this server, nor show what it computes"
        return None


def tokens_of(connection: HTTPConnection) -> list[str]:
    """The tokens that a request carries, in its header, query or cookie."""
    scheme, _, bearer = connection.headers.get("authorization", "").partition(" ")
    candidates = [bearer.strip() if scheme.lower() == "bearer" else "", connection.query_params.get("token", "")]
    return [one for one in (*candidates, connection.cookies.get(COOKIE, "")) if one]


def is_loopback(host: str) -> bool:
    """Whether the host name or address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _hostname(host: str) -> str | None:
    """The host without its port: empty if there is none, None if the header is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "") if parts.port is None or parts.port else None
    except ValueError:
        return None


def _is_same(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False


def _is_cross_site(connection: HTTPConnection) -> bool:
    """Whether a browser sends the request on behalf of another site's page, for example for an image, which sends no
    Origin. Links to the server's pages may be followed, but not to what it computes."""
    if connection.headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    is_link = (connection.headers.get("sec-fetch-mode"), connection.headers.get("sec-fetch-dest")) == (
        "navigate",
        "document",
    )
    computes = connection.url.path.startswith(("/collections/", "/sql", "/frontiers", "/metrics", SEND))
    return computes or not is_link
