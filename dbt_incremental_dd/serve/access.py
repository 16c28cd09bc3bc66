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
        host = urlsplit(f"//{connection.headers.get('host', '')}").hostname or ""
        if is_loopback(self.host) and not is_loopback(host):
            return 403, f"this server is not {host}: open it by the address that it listens on"
        origin = connection.headers.get("origin")
        if origin and origin not in self.origins and not _is_same(origin, connection.headers.get("host", "")):
            return (
                403,
                f"pages of {origin} may not read from this server; it can be started with --allow-origin {origin}",
            )
        if self.token is not None and not self.has_token(connection):
            return 401, "a token is needed: as `Authorization: Bearer ...`, or as `?token=...`"
        return None

    def has_token(self, connection: HTTPConnection) -> bool:
        """Whether it comes with the token, in its header, its query or its cookie."""
        scheme, _, given = connection.headers.get("authorization", "").partition(" ")
        told = [given.strip() if scheme.lower() == "bearer" else "", connection.query_params.get("token", "")]
        told.append(connection.cookies.get(COOKIE, ""))
        return any(hmac.compare_digest(one.encode(), (self.token or "").encode()) for one in told if one)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it by that name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_same(origin: str, host: str) -> bool:
    return urlsplit(origin).netloc == host
