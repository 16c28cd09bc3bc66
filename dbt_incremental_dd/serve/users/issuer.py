"""An issuer of tokens (OpenID Connect), as the file of users names it."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dbt_incremental_dd.serve.users.yaml_nodes import Node

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a private key. Others are refused: with a public key as their secret, anyone could sign."""


@dataclass(frozen=True)
class Issuer:
    """``url`` and ``audience``: what a token's ``iss`` and ``aud`` have to be. ``keys``: where the public keys are
    (JWKS); None to ask ``url``. ``name`` and ``groups``: the claims that name the user and the user's groups; a dot
    leads into an object. ``roles``: pairs of a group and a role; None if groups are called as roles."""

    url: str
    audience: str
    keys: str | None = None
    name: str = "sub"
    groups: str = "groups"
    roles: tuple[tuple[str, str], ...] | None = None
    algorithms: tuple[str, ...] = _ALGORITHMS

    def name_in(self, claims: Mapping[str, Any]) -> str | None:
        """The user's name; None if there is none."""
        found = _claim(claims, self.name)
        return found if isinstance(found, str) and found else None

    def roles_in(self, claims: Mapping[str, Any]) -> list[str]:
        """The names of the user's roles."""
        found = _claim(claims, self.groups)
        groups = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        if self.roles is None:
            return [one for one in groups if isinstance(one, str)]
        return [role for group, role in self.roles if group in groups]


def read_issuer(node: Node) -> Issuer:
    """Reads ``oidc``. Raises ConfigError if it is wrong, or the library that checks tokens is not installed."""
    texts = dict.fromkeys(("issuer", "audience", "name_claim", "groups_claim"), Node.text)
    readers = {**texts, "keys_url": _url, "algorithms": _algorithms, "roles": _roles}
    found: dict[str, Any] = node.fields(readers)
    for name in ("issuer", "audience"):
        if name not in found:
            raise node.error(f"it has no {name}", "It tells your tokens from those of others.")
    if importlib.util.find_spec("jwt") is None:
        raise node.error("tokens of an issuer need PyJWT", "Install it: pip install 'dbt-incremental-dd[oidc]'")
    _require_url(node, found["issuer"])
    return Issuer(
        found["issuer"],
        found["audience"],
        found.get("keys_url"),
        found.get("name_claim", "sub"),
        found.get("groups_claim", "groups"),
        found.get("roles"),
        found.get("algorithms", _ALGORITHMS),
    )


def _claim(claims: Mapping[str, Any], path: str) -> object:
    """The claim of this name, or else what a path of names leads to."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _roles(node: Node) -> tuple[tuple[str, str], ...]:
    return tuple((group, role) for group, value in node.mapping().items() for role in value.texts())


def _algorithms(node: Node) -> tuple[str, ...]:
    for one in node.texts():
        if one not in _ALGORITHMS:
            raise node.error(f"{one} is not allowed", f"Allowed: {', '.join(_ALGORITHMS)}.")
    return node.texts()


def _url(node: Node) -> str:
    _require_url(node, node.text())
    return node.text()


def _require_url(node: Node, url: str) -> None:
    if not is_trusted(url):
        raise node.error(f"{url} is no https:// address", "Keys that come by http could be anybody's.")


def is_trusted(url: str) -> bool:
    """Whether what comes from a URL is of its host: by https, or from this machine."""
    parts = urlsplit(url)
    is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and is_local))
