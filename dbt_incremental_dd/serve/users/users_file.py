"""The file of users:

    roles:
      sales:
        read: ["sales.*"]
        rows: {sales.orders: "region = 'EU'"}
      shop:
        send: [shop.clicks]
    users:
      ann:
        tokens: ["sha256:..."]
        roles: [sales]
        read: [staff.teams]
        metrics: true

A role is a grant, and so is a user's own ``read``; grants add up, and so do the patterns of ``send``. A role's ``rows``
limit what the role lets read; a user's own ``rows`` limit whatever the user may read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from dbt_incremental_dd.core.errors import ConfigError, QueryError
from dbt_incremental_dd.core.rights import Grant, Rights
from dbt_incremental_dd.serve.users.issuer import Issuer, read_issuer
from dbt_incremental_dd.serve.users.tokens import is_digest, is_same
from dbt_incremental_dd.serve.users.user import User
from dbt_incremental_dd.serve.users.yaml_nodes import Node, read_yaml


@dataclass(frozen=True)
class Role:
    """``metrics``: whoever has the role may read /metrics. ``send``: patterns of sources that may be sent events."""

    grant: Grant
    metrics: bool = False
    send: tuple[str, ...] = ()


@dataclass(frozen=True)
class Users:
    """``tokens``: each digest, with its user. ``subjects``: users by the name that the issuer has for them."""

    tokens: tuple[tuple[str, User], ...] = ()
    roles: Mapping[str, Role] = field(default_factory=dict)
    subjects: Mapping[str, User] = field(default_factory=dict)
    issuer: Issuer | None = None

    def of_digest(self, wanted: str) -> User | None:
        """The user with the token of this digest; None if there is none. It takes as long for any."""
        found = None
        for known, user in self.tokens:
            found = user if is_same(known, wanted) else found
        return found

    def of_claims(self, claims: Mapping[str, Any]) -> User | None:
        """The user of a token that the issuer has signed: with the grants of the user that it names, and those of its
        groups' roles. None if there are none."""
        issuer = self.issuer
        name = None if issuer is None else issuer.name_in(claims)
        if issuer is None or name is None:
            return None
        known = self.subjects.get(name)
        roles = [self.roles[role] for role in issuer.roles_in(claims) if role in self.roles]
        if known is None:
            return user_of(name, roles) if roles else None
        more = user_of(name, roles, known.rows)
        grants = dict.fromkeys((*known.rights.grants, *more.rights.grants))
        send = tuple(dict.fromkeys((*known.send, *more.send)))
        return replace(known, rights=Rights(tuple(grants)), metrics=known.metrics or more.metrics, send=send)

    def unmatched(self, names: Sequence[str]) -> list[str]:
        """The patterns of ``rows`` that are of none of these collections: a misspelt one limits nothing."""
        users = [*(user for _, user in self.tokens), *self.subjects.values()]
        limited = [*(role.grant.rows for role in self.roles.values()), *(user.rows for user in users)]
        patterns = {pattern for rows in limited for pattern, _ in rows}
        return sorted(one for one in patterns if not any(fnmatchcase(name, one) for name in names))


def read_users(path: Path) -> Users:
    """Reads a file of users. Raises ConfigError, naming the line and the user, if it is wrong or cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"the file of users {path} cannot be read: {error}", "Give its path by --users.") from error
    parts: dict[str, Any] = read_yaml(str(path), text).fields(
        {"roles": Node.mapping, "users": Node.mapping, "oidc": read_issuer}
    )
    roles = {name: _role(node) for name, node in parts.get("roles", {}).items()}
    tokens: dict[str, User] = {}
    subjects: dict[str, User] = {}
    for name, node in parts.get("users", {}).items():
        user, own, subject = _user(name, node, roles)
        for one in own:
            if one in tokens:
                raise node.error(f"{tokens[one].name} has the same token", "Make another one: dbt-dd token")
            tokens[one] = user
        if subject in subjects:
            raise node.error(f"{subjects[subject].name} has the same subject", "A subject is one user.")
        if subject is not None:
            subjects[subject] = user
    return Users(tuple(tokens.items()), roles, subjects, parts.get("oidc"))


def _role(node: Node) -> Role:
    readers = {"read": _patterns, "rows": _conditions, "metrics": Node.flag, "send": _patterns}
    found: dict[str, Any] = node.fields(readers)
    if found.get("rows") and "read" not in found:
        raise node.error("it has rows, and lets read nothing", "Add read: the patterns of collections' names.")
    grant = Grant(found.get("read", ()), found.get("rows", ()))
    return Role(grant, found.get("metrics", False), found.get("send", ()))


def _user(name: str, node: Node, roles: Mapping[str, Role]) -> tuple[User, tuple[str, ...], str | None]:
    """The user, its tokens' digests, and its subject."""
    readers = {"read": _patterns, "rows": _conditions, "metrics": Node.flag, "roles": Node.texts, "tokens": _digests}
    readers |= {"subject": Node.text, "send": _patterns}
    found: dict[str, Any] = node.fields(readers)
    if "tokens" not in found and "subject" not in found:
        raise node.error("it has no tokens", "Make one: dbt-dd token")
    own = Role(Grant(found.get("read", ())), found.get("metrics", False), found.get("send", ()))
    for role in found.get("roles", ()):
        if role not in roles:
            raise node.error(f"there is no role {role}", f"Roles: {', '.join(roles) or 'none'}.")
    user = user_of(name, [own, *(roles[role] for role in found.get("roles", ()))], found.get("rows", ()))
    return user, found.get("tokens", ()), found.get("subject")


def user_of(name: str, roles: Sequence[Role], rows: tuple[tuple[str, str], ...] = ()) -> User:
    """A user with these roles, and with conditions that limit each of them."""
    grants = dict.fromkeys(Grant(role.grant.read, role.grant.rows + rows) for role in roles if role.grant.read)
    send = dict.fromkeys(pattern for role in roles for pattern in role.send)
    return User(name, Rights(tuple(grants)), any(role.metrics for role in roles), rows, tuple(send))


def _digests(node: Node) -> tuple[str, ...]:
    for one in node.texts():
        if not is_digest(one):
            raise node.error(
                "a token is given as its digest, sha256:<64 hexadecimal digits>", "dbt-dd token makes both."
            )
    return node.texts()


def _patterns(node: Node) -> tuple[str, ...]:
    return tuple(one.lower() for one in node.texts())


def _conditions(node: Node) -> tuple[tuple[str, str], ...]:
    from dbt_incremental_dd.subscribe.condition import require_condition  # imports a SQL parser

    found = []
    for pattern, value in node.mapping().items():
        try:
            require_condition(value.text())
        except QueryError as error:
            raise value.error(f"the condition on rows is wrong: {error.message}", error.remedy) from error
        found.append((pattern.lower(), value.text()))
    return tuple(found)
