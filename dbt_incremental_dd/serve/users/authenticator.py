"""Finds out whose a token is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from dbt_incremental_dd.serve.users.oidc import Oidc
from dbt_incremental_dd.serve.users.tokens import digest, is_same
from dbt_incremental_dd.serve.users.user import ANYONE, OWNER, User
from dbt_incremental_dd.serve.users.users_file import Users
from dbt_incremental_dd.serve.watched_files import WatchedFiles


@dataclass(frozen=True)
class Login:
    """A user who has been let in. ``again``: who the same token belongs to now; None if to nobody any more.
    ``expires``: in seconds since 1970; None for never."""

    user: User
    again: Callable[[], User | None]
    expires: float | None = None

    @property
    def is_valid(self) -> bool:
        """Whether the token still belongs to this user, with the same rights."""
        return self.again() == self.user

    @property
    def has_expired(self) -> bool:
        """Whether its time is over."""
        return self.expires is not None and self.expires <= time.time()


class Authenticator:
    """``token``: the server's own, which may read everything; ``users``: the file of users. With neither, everybody is
    let in."""

    def __init__(self, token: str | None = None, users: WatchedFiles[Users] | None = None) -> None:
        self._owner = None if token is None else digest(token)
        self._users = users
        self._oidc = Oidc()

    @property
    def needs_token(self) -> bool:
        """Whether clients need a token."""
        return self._owner is not None or self._users is not None

    @property
    def can_change(self) -> bool:
        """Whether a login may become invalid."""
        return self._users is not None

    def refresh(self) -> bool:
        """Reads the file of users again if it has changed; returns whether it has."""
        return self._users is not None and self._users.refresh()

    async def login(self, token: str) -> Login | None:
        """The login of whoever has this token; None if nobody has."""
        if not self.needs_token:
            return Login(ANYONE, lambda: ANYONE)
        wanted = digest(token)
        user = self._of_digest(wanted)
        if user is not None:
            return Login(user, lambda: self._of_digest(wanted))
        return None if self._users is None else await self._of_issuer(self._users, token)

    def _of_digest(self, wanted: str) -> User | None:
        if self._owner is not None and is_same(self._owner, wanted):
            return OWNER
        return None if self._users is None else self._users.content.of_digest(wanted)

    async def _of_issuer(self, users: WatchedFiles[Users], token: str) -> Login | None:
        """The login of a token that the issuer of the file of users has signed."""
        issuer = users.content.issuer
        claims = None if issuer is None else await self._oidc.claims(issuer, token)
        if issuer is None or claims is None:
            return None

        def again() -> User | None:
            content = users.content
            return content.of_claims(claims) if content.issuer == issuer else None

        user = again()
        return None if user is None else Login(user, again, float(claims["exp"]))
