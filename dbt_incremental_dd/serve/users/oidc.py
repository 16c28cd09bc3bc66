"""Checks tokens that an issuer has signed (JSON Web Tokens), by PyJWT, which fetches the issuer's public keys."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.serve.users.issuer import Issuer, is_trusted

if TYPE_CHECKING:
    from jwt import PyJWKClient

_log = logging.getLogger(__name__)
_DISCOVERY = "/.well-known/openid-configuration"
_TIMEOUT = 10
"""Seconds for an answer of the issuer."""
_LEEWAY = 5
"""Seconds by which clocks may differ, for times at which tokens begin to be valid."""
_MAX_WAITING = 200
"""Tokens that may wait to be checked; more are refused."""
_MAX_CHARACTERS = 16_384
"""Maximum length of a token."""


class Oidc:
    """Belongs to one event loop. Nothing is imported nor fetched before the first token."""

    def __init__(self) -> None:
        self._clients: dict[Issuer, PyJWKClient] = {}
        # An issuer that does not answer keeps nobody else waiting.
        self._threads: ThreadPoolExecutor | None = None
        self._waiting = 0

    async def claims(self, issuer: Issuer, token: str) -> Mapping[str, Any] | None:
        """The claims of a token; None unless the issuer has signed it, for this audience, and it is valid now."""
        if token.count(".") != 2 or len(token) > _MAX_CHARACTERS or self._waiting >= _MAX_WAITING:
            return None
        if self._threads is None:
            self._threads = ThreadPoolExecutor(2, thread_name_prefix="oidc")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._checked, issuer, token)
        finally:
            self._waiting -= 1

    def _checked(self, issuer: Issuer, token: str) -> Mapping[str, Any] | None:
        import jwt

        try:
            if jwt.get_unverified_header(token).get("alg") not in issuer.algorithms:
                return None
            key = self._client(issuer).get_signing_key_from_jwt(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(issuer.algorithms),
                audience=issuer.audience,
                issuer=issuer.url,
                leeway=_LEEWAY,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, OSError, ValueError) as error:
            # The reason is for the server's log: it may tell of keys, and is no use to who has no token.
            _log.warning("a token of %s is refused: %s", issuer.url, error)
            return None
        return claims

    def _client(self, issuer: Issuer) -> PyJWKClient:
        """Caches keys for minutes. An unknown key lets it fetch them again, every 30 seconds at most."""
        import jwt

        if issuer not in self._clients:
            self._clients[issuer] = jwt.PyJWKClient(issuer.keys or _keys_of(issuer), timeout=_TIMEOUT)
        return self._clients[issuer]


def _keys_of(issuer: Issuer) -> str:
    """Where the issuer says that its keys are. Raises OSError or ValueError if it does not."""
    with urllib.request.urlopen(issuer.url.rstrip("/") + _DISCOVERY, timeout=_TIMEOUT) as answer:
        told = json.load(answer)
    keys = told.get("jwks_uri") if isinstance(told, dict) and told.get("issuer") == issuer.url else None
    if not isinstance(keys, str) or not is_trusted(keys):
        raise ValueError("its configuration is of another issuer, or names no keys by https")
    return keys
