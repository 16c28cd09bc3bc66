"""Who may talk to the server: whoever has the token, where there is one; and no page of another site."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

COOKIE = "dbt_dd_token"


@dataclass(frozen=True)
class Access:
    """``token``: None for none. ``host``: where the server listens; on the loopback it answers to that name alone, so
    that no site can have its own name lead there. ``origins``: other sites whose pages may read from it."""

    token: str | None = None
    host: str = "127.0.0.1"
    origins: tuple[str, ...] = ()

    def refusal(self, connection: HTTPConnection) -> tuple[int, str] | None:
        """A status and why, where it is not to be answered."""
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
        if not origin and _is_cross_site(connection):
            return 403, "pages of other sites may not read from this server, nor show what it computes"
        if self.token is not None and not self.has_token(connection):
            return 401, "a token is needed: as `Authorization: Bearer ...`, or as `?token=...`"
        return None

    def has_token(self, connection: HTTPConnection) -> bool:
        """Whether it comes with the token, in its header, its query or its cookie."""
        scheme, _, bearer = connection.headers.get("authorization", "").partition(" ")
        candidates = [bearer.strip() if scheme.lower() == "bearer" else "", connection.query_params.get("token", "")]
        candidates.append(connection.cookies.get(COOKIE, ""))
        return any(hmac.compare_digest(one.encode(), (self.token or "").encode()) for one in candidates if one)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it by that name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _hostname(host: str) -> str | None:
    """Without its port; empty if there is none, None if it cannot be read."""
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
    """Whether a browser asks for it on behalf of another site's page, as for an image, which sends no Origin. A link to
    a page of the server may be followed; what it computes is not among them."""
    if connection.headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    is_link = (connection.headers.get("sec-fetch-mode"), connection.headers.get("sec-fetch-dest")) == (
        "navigate",
        "document",
    )
    computes = connection.url.path.startswith(("/collections/", "/sql", "/frontiers"))
    return computes or not is_link
