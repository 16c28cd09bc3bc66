"""Finds out whose a token is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dbt_incremental_dd.serve.users.tokens import is_same
from dbt_incremental_dd.serve.users.user import ANYONE, OWNER, User
from dbt_incremental_dd.serve.users.users_file import Users
from dbt_incremental_dd.serve.watched_files import WatchedFiles


@dataclass(frozen=True)
class Login:
    """A user who has been let in. ``again``: who the same token belongs to now; None if to nobody any more."""

    user: User
    again: Callable[[], User | None]

    @property
    def is_valid(self) -> bool:
        """Whether the token still belongs to this user, with the same rights."""
        return self.again() == self.user


class Authenticator:
    """``token``: the server's own, which may read everything; ``users``: the file of users. With neither, everybody is
    let in."""

    def __init__(self, token: str | None = None, users: WatchedFiles[Users] | None = None) -> None:
        self._token = token
        self._users = users

    @property
    def needs_token(self) -> bool:
        """Whether clients need a token."""
        return self._token is not None or self._users is not None

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
        user = self._static(token)
        return None if user is None else Login(user, lambda: self._static(token))

    def _static(self, token: str) -> User | None:
        if self._token is not None and is_same(self._token, token):
            return OWNER
        return None if self._users is None else self._users.content.of_token(token)
