"""What logins are doing: it ends as soon as they are not valid any more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from dbt_incremental_dd.serve.users.authenticator import Authenticator, Login

T = TypeVar("T")
CHECK_SECONDS = 1.0
"""Interval at which logins are checked."""
ENDED = "the token is not valid any more, or its rights have changed"


class LoginEnded(Exception):
    """A login has become invalid while it was in use."""


class Sessions:
    """Belongs to one event loop."""

    def __init__(self, authenticator: Authenticator) -> None:
        self.authenticator = authenticator
        self._running: dict[asyncio.Task[Any], Login] = {}
        self._ended: set[asyncio.Task[Any]] = set()

    async def run(self, login: Login, work: Coroutine[Any, Any, T]) -> T:
        """Awaits work that is done for a login. Raises LoginEnded, once the work has been cancelled, if the login
        becomes invalid."""
        if not self.authenticator.can_change:
            return await work
        task = asyncio.ensure_future(work)
        self._running[task] = login
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            was_ended = task in self._ended and task.cancelled()
            if not was_ended:
                task.cancel()
                await asyncio.wait({task})
                raise
            raise LoginEnded(ENDED) from None
        finally:
            del self._running[task]
            self._ended.discard(task)

    async def watch(self) -> None:
        """Checks all logins for as long as it runs."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            has_changed = await asyncio.to_thread(self.authenticator.refresh)
            for task, login in list(self._running.items()):
                # Work that has been cancelled and goes on is cancelled again.
                if task in self._ended or login.has_expired or (has_changed and not login.is_valid):
                    self._ended.add(task)
                    task.cancel()
